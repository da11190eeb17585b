"""The process beside the training that samples the machine and notices what the training's log reports."""
