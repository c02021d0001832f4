"""What only pages show: tables of results, comparisons and claims, costs, and questions of two rows side by side."""
