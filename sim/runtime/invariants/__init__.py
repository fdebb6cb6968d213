"""What must hold in every run: each invariant observes events, and reports violations with the journal rows that show them."""
