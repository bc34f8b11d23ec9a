package lancecore.spark;

import java.io.File;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.SparkFiles;

/** The Python that this JVM's workers run in: the one that PySpark's own workers would have here, with the job's py-files. */
final class Interpreter {
  final String python;
  private final Set<String> path;

  private Interpreter(String python, Set<String> path) {
    this.python = python;
    this.path = path;
  }

  static Interpreter here() {
    SparkEnv env = SparkEnv.get();
    SparkConf conf = env == null ? new SparkConf() : env.conf();
    String named = conf.get("spark.pyspark.python", "");
    String fromEnvironment = System.getenv("PYSPARK_PYTHON");
    String python = !named.isEmpty() ? named : fromEnvironment != null && !fromEnvironment.isEmpty() ? fromEnvironment : "python3";
    Set<String> path = new LinkedHashSet<>();
    if (env != null) {
      String root = SparkFiles.getRootDirectory();
      path.add(root);
      for (String file : conf.get("spark.submit.pyFiles", "").split(",")) {
        if (!file.isBlank()) {
          path.add(new File(root, new File(file).getName()).getPath());
        }
      }
    }
    return new Interpreter(python, path);
  }

  void addTo(Map<String, String> environment) {
    Set<String> all = new LinkedHashSet<>(path);
    String given = environment.get("PYTHONPATH");
    if (given != null && !given.isEmpty()) {
      all.add(given);
    }
    if (!all.isEmpty()) {
      environment.put("PYTHONPATH", String.join(File.pathSeparator, all));
    }
    environment.put("PYTHONUNBUFFERED", "1");
  }
}
