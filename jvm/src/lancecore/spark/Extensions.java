package lancecore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import scala.Function1;
import scala.Function2;
import scala.runtime.BoxedUnit;

/**
 * Statements that Spark does not have (OPTIMIZE, VECTOR_SEARCH, ...): `spark.sql.extensions = lancecore.spark.Extensions`.
 * Python says them as statements that Spark has. Spark's parser is asked for everything else, also for those whose table is of
 * another catalog.
 */
public final class Extensions implements Function1<SparkSessionExtensions, BoxedUnit> {
  private static final Pattern PERHAPS = Pattern.compile(
      "^\\s*(OPTIMIZE|VACUUM|REPLACE|SHOW\\s+(INDEX|TAG|BRANCH)|ALTER\\s+TABLE)|\\b\\w*SEARCH\\s*\\(",
      Pattern.CASE_INSENSITIVE);

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"}) // the session's class has another name in Spark 4
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectParser((Function2) new OverParser());
    return BoxedUnit.UNIT;
  }

  private static final class OverParser implements Function2<Object, ParserInterface, ParserInterface> {
    @Override
    public ParserInterface apply(Object session, ParserInterface parser) {
      return (ParserInterface) Proxy.newProxyInstance(Extensions.class.getClassLoader(), new Class<?>[] {ParserInterface.class},
          (proxy, method, arguments) -> {
            try {
              if (isOfStatement(method, arguments)) {
                arguments[0] = said(session, (String) arguments[0]);
              }
              return method.invoke(parser, arguments);
            } catch (InvocationTargetException error) {
              throw error.getCause();
            }
          });
    }
  }

  private static boolean isOfStatement(Method method, Object[] arguments) {
    return (method.getName().startsWith("parsePlan") || method.getName().equals("parseQuery")) && arguments != null
        && arguments.length > 0 && arguments[0] instanceof String && PERHAPS.matcher((String) arguments[0]).find();
  }

  /** The statement for Spark. */
  private static String said(Object session, String statement) throws ReflectiveOperationException {
    JsonNode found = Workers.askAgain(Worker.JSON.createObjectNode().put("do", "statement").put("sql", statement));
    if (!found.has("sql")) {
      return statement;
    }
    Object state = session.getClass().getMethod("sessionState").invoke(session);
    Catalogs catalogs = new Catalogs(state.getClass().getMethod("catalogManager").invoke(state));
    String sql = found.get("sql").asText();
    for (int index = 0; index < found.get("tables").size(); index++) {
      Name name = new Name(catalogs, found.get("tables").get(index));
      if (!(catalogs.catalog(name.catalog) instanceof LanceCatalog)) {
        return statement;
      }
      sql = sql.replace("\0c" + index + "\0", quoted(name.catalog)).replace("\0q" + index + "\0", name.quoted())
          .replace("\0t" + index + "\0", "'" + name.dotted().replace("\\", "\\\\").replace("'", "\\'") + "'");
    }
    if (sql.startsWith("CALL") && SparkContext.getOrCreate().version().startsWith("3.")) {
      throw new UnsupportedOperationException("lance: Spark 3.5 has no CALL, which this statement needs: use Spark 4, "
          + "the command `lance`, or a job");
    }
    return sql;
  }

  /** Spark's catalogs of a session, whose class is an interface from Spark 4.2 on and is asked by the names of its methods. */
  private static final class Catalogs {
    private final Object manager;

    Catalogs(Object manager) {
      this.manager = manager;
    }

    CatalogPlugin catalog(String name) throws ReflectiveOperationException {
      return (CatalogPlugin) of("catalog", name);
    }

    boolean isCatalogRegistered(String name) throws ReflectiveOperationException {
      return (Boolean) of("isCatalogRegistered", name);
    }

    CatalogPlugin currentCatalog() throws ReflectiveOperationException {
      return (CatalogPlugin) manager.getClass().getMethod("currentCatalog").invoke(manager);
    }

    String[] currentNamespace() throws ReflectiveOperationException {
      return (String[]) manager.getClass().getMethod("currentNamespace").invoke(manager);
    }

    private Object of(String method, String name) throws ReflectiveOperationException {
      return manager.getClass().getMethod(method, String.class).invoke(manager, name);
    }
  }

  private static String quoted(String part) {
    return "`" + part.replace("`", "``") + "`";
  }

  /** A table's name as Spark resolves it: the first part is a catalog where there is one of that name. */
  private static final class Name {
    final String catalog;
    private final String[] parts;

    Name(Catalogs catalogs, JsonNode given) throws ReflectiveOperationException {
      boolean named = given.size() > 1 && catalogs.isCatalogRegistered(given.get(0).asText());
      catalog = named ? given.get(0).asText() : catalogs.currentCatalog().name();
      String[] before = given.size() > 1 ? new String[0] : catalogs.currentNamespace();
      int skipped = named ? 1 : 0;
      parts = java.util.Arrays.copyOf(before, before.length + given.size() - skipped);
      for (int index = skipped; index < given.size(); index++) {
        parts[before.length + index - skipped] = given.get(index).asText();
      }
    }

    String dotted() {
      return String.join(".", parts);
    }

    String quoted() {
      StringBuilder found = new StringBuilder(Extensions.quoted(catalog));
      for (String part : parts) {
        found.append('.').append(Extensions.quoted(part));
      }
      return found.toString();
    }
  }
}
