"""What users hold: LanceDataset, LanceFragment and the builders. They only forward."""
