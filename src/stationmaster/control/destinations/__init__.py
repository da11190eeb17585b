"""Where models go besides home: the Hub, a bucket, ComfyDeploy."""
