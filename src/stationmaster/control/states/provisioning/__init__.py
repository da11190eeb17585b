"""PROVISIONING: rent a machine within the agreed price and log in."""
