"""Messages to people: who gets them, what they contain, and sending them with retries."""
