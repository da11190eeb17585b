"""Where the app's values come from: the jobs of a station, or machines that anybody rented."""
