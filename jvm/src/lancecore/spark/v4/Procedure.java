package lancecore.spark.v4;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** One job of the catalog on one table, with the job's own arguments; those that are left out are null. */
final class Procedure implements UnboundProcedure, BoundProcedure {
  private final LanceCatalog catalog;
  private final JsonNode described;

  Procedure(LanceCatalog catalog, JsonNode described) {
    this.catalog = catalog;
    this.described = described;
  }

  @Override
  public String name() {
    return described.get("name").asText();
  }

  @Override
  public String description() {
    return "lance " + name();
  }

  @Override
  public BoundProcedure bind(StructType input) {
    return this;
  }

  @Override
  public boolean isDeterministic() {
    return false;
  }

  @Override
  public ProcedureParameter[] parameters() {
    JsonNode fields = described.get("arguments");
    ProcedureParameter[] found = new ProcedureParameter[fields.size() + 1];
    found[0] = ProcedureParameter.in("table", DataTypes.StringType).build();
    for (int index = 1; index < found.length; index++) {
      JsonNode field = fields.get(index - 1);
      found[index] = ProcedureParameter.in(field.get("name").asText(), type(field)).defaultValue("NULL").build();
    }
    return found;
  }

  private static DataType type(JsonNode field) {
    return DataType.fromDDL(field.get("type").asText());
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    ObjectNode given = catalog.arguments();
    if (!input.isNullAt(0)) {
      given.put("table", input.getUTF8String(0).toString());
    }
    JsonNode fields = described.get("arguments");
    for (int index = 1; index <= fields.size(); index++) {
      JsonNode field = fields.get(index - 1);
      if (!input.isNullAt(index)) {
        put(given, field.get("name").asText(), field.get("type").asText(), input, index);
      }
    }
    return List.of(catalog.carryOut(name(), given)).iterator();
  }

  private static void put(ObjectNode given, String name, String type, InternalRow input, int index) {
    switch (type) {
      case "bigint":
        given.put(name, input.getLong(index));
        break;
      case "double":
        given.put(name, input.getDouble(index));
        break;
      case "boolean":
        given.put(name, input.getBoolean(index));
        break;
      case "array<string>":
        for (Object item : input.getArray(index).toObjectArray(DataTypes.StringType)) {
          given.withArray(name).add(item.toString());
        }
        break;
      default:
        given.put(name, input.getUTF8String(index).toString());
    }
  }
}
