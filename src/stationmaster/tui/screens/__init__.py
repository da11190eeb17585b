"""The screens of the app: all trainings, one of them, the keys, a question."""
