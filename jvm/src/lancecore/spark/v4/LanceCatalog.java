package lancecore.spark.v4;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;

/** The catalog for Spark 4.0 and later, whose SQL has CALL. */
public final class LanceCatalog extends lancecore.spark.LanceCatalog implements ProcedureCatalog {
  private static final String NAMESPACE = "system";

  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    if (procedure.namespace().length == 1 && procedure.namespace()[0].equals(NAMESPACE)) {
      for (JsonNode described : procedures()) {
        if (described.get("name").asText().equals(procedure.name())) {
          return new Procedure(this, described);
        }
      }
    }
    throw new IllegalArgumentException("lance: no procedure " + procedure + "; SHOW PROCEDURES lists them");
  }

  // Since Spark 4.1.
  public Identifier[] listProcedures(String[] namespace) {
    JsonNode found = procedures();
    Identifier[] names = new Identifier[found.size()];
    for (int index = 0; index < names.length; index++) {
      names[index] = Identifier.of(new String[] {NAMESPACE}, found.get(index).get("name").asText());
    }
    return names;
  }

  ObjectNode arguments() {
    return json().createObjectNode();
  }

  Scan carryOut(String procedure, ObjectNode arguments) {
    return call(procedure, arguments);
  }
}
