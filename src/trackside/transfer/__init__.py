"""Files that come to the machine or leave it: hashes, archives, signed uploads and downloads."""
