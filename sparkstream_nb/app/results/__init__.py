"""What an app answers: outputs, statistics, aggregations, divergences and errors."""
