package lancecore.spark;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.connector.catalog.TableChange;

/** The changes of an ALTER TABLE as JSON for Python. A column's place (FIRST, AFTER) is refused: Lance has no order of users'. */
final class Changes {
  private Changes() {}

  static ObjectNode describe(TableChange change) {
    ObjectNode found = Worker.JSON.createObjectNode();
    if (change instanceof TableChange.SetProperty) {
      TableChange.SetProperty set = (TableChange.SetProperty) change;
      return found.put("change", "set").put("property", set.property()).put("value", set.value());
    }
    if (change instanceof TableChange.RemoveProperty) {
      return found.put("change", "unset").put("property", ((TableChange.RemoveProperty) change).property());
    }
    if (!(change instanceof TableChange.ColumnChange)) {
      return found.put("change", change.getClass().getSimpleName());
    }
    ArrayNode column = found.putArray("column");
    for (String part : ((TableChange.ColumnChange) change).fieldNames()) {
      column.add(part);
    }
    if (change instanceof TableChange.AddColumn) {
      TableChange.AddColumn add = (TableChange.AddColumn) change;
      found.put("change", add.position() == null ? "add" : "the place of a new column (FIRST, AFTER)");
      return found.put("type", add.dataType().json()).put("nullable", add.isNullable());
    }
    if (change instanceof TableChange.DeleteColumn) {
      return found.put("change", "drop").put("if_exists", ((TableChange.DeleteColumn) change).ifExists());
    }
    if (change instanceof TableChange.RenameColumn) {
      return found.put("change", "rename").put("name", ((TableChange.RenameColumn) change).newName());
    }
    if (change instanceof TableChange.UpdateColumnType) {
      return found.put("change", "type").put("type", ((TableChange.UpdateColumnType) change).newDataType().json());
    }
    if (change instanceof TableChange.UpdateColumnNullability) {
      return found.put("change", "nullable").put("nullable", ((TableChange.UpdateColumnNullability) change).nullable());
    }
    if (change instanceof TableChange.UpdateColumnComment) {
      return found.put("change", "comment").put("comment", ((TableChange.UpdateColumnComment) change).newComment());
    }
    return found.put("change", change.getClass().getSimpleName());
  }
}
