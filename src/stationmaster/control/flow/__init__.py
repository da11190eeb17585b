"""What every visit to a job uses: the world it works on, what a step comes to, shared reads and writes."""
