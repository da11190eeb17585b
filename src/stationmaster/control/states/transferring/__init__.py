"""TRANSFERRING_DATA: send the plan, the recipe's files and the dataset."""
