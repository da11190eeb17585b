"""Completion in bash, zsh and fish: what a press of TAB offers, and the scripts that ask for it.

A script calls `stationmaster __complete SHELL …` at each TAB. Commands and options come from a table (`words.json`,
made from the commands by `make docs`), so that no command is imported; names of jobs, recipes, models and users are
read from this computer's files. Nothing is written, started or asked for over a network.
"""
