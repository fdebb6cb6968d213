"""What a command does, for the terminal and for Python alike: options go in, a result that prints itself comes out."""
