package lance;

/**
 * What `format("lance")` finds: Spark takes a format that no source has registered for a package with this class. A source
 * that is registered under that name, such as lance-spark's, comes first, so the two never clash on one class path.
 */
public final class DefaultSource extends lancecore.spark.LanceProvider {}
