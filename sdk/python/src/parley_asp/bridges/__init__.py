"""Bridges to frameworks for agents. None of them decides what a human has to."""
