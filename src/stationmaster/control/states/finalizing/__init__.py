"""FINALIZING: publish the model and conclude the job."""
