import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * HDFS (a name node, a data node) and YARN (a resource manager, a node manager) in one process on the loopback.
 *
 * <pre>
 *   java -cp "pyspark/jars/*:hadoop-client-minicluster.jar" MiniHadoop.java FOLDER
 *   -> READY hdfs://127.0.0.1:40001 127.0.0.1:40002 127.0.0.1:40003     file system, WebHDFS, the resource manager's REST
 * </pre>
 *
 * FOLDER/conf is what HADOOP_CONF_DIR names. It runs until its standard input ends, so it never outlives who started it.
 */
public class MiniHadoop {
  private static final String LOOPBACK = "127.0.0.1";

  public static void main(String[] arguments) {
    try {
      run(new File(arguments[0]));
      System.exit(0);
    } catch (Throwable error) {
      error.printStackTrace();
      System.exit(1); // threads of what has started would go on
    }
  }

  private static void run(File folder) throws Exception {
    Configuration hdfs = new Configuration();
    hdfs.set("hdfs.minidfs.basedir", new File(folder, "dfs").getPath());
    hdfs.setBoolean("dfs.permissions.enabled", false);
    MiniDFSCluster files = new MiniDFSCluster.Builder(hdfs).numDataNodes(1).build();
    files.waitActive();
    String root = "hdfs://" + LOOPBACK + ":" + files.getNameNodePort();

    // The artifact's own defaults stay out of what clients are told.
    Configuration settings = yarnSettings(root);
    YarnConfiguration yarn = new YarnConfiguration();
    settings.forEach(entry -> yarn.set(entry.getKey(), entry.getValue()));
    MiniYARNCluster nodes = new MiniYARNCluster("mini", 1, 1, 1);
    nodes.init(yarn);
    nodes.start();
    if (!nodes.waitForNodeManagersToConnect(60_000)) {
      throw new IllegalStateException("the node manager did not connect");
    }

    File conf = new File(folder, "conf");
    conf.mkdirs();
    Configuration core = new Configuration(false);
    core.set("fs.defaultFS", root);
    write(core, new File(conf, "core-site.xml"));
    write(settings, new File(conf, "yarn-site.xml"));
    System.out.println("READY " + root
        + " " + LOOPBACK + ":" + files.getNameNode().getHttpAddress().getPort()
        + " " + settings.get(YarnConfiguration.RM_WEBAPP_ADDRESS));
    System.out.flush();

    while (System.in.read() >= 0) { }
    nodes.stop();
    files.shutdown();
  }

  private static Configuration yarnSettings(String root) throws Exception {
    Configuration yarn = new Configuration(false);
    yarn.set("fs.defaultFS", root);
    yarn.set(YarnConfiguration.RM_HOSTNAME, LOOPBACK);
    yarn.set(YarnConfiguration.NM_BIND_HOST, LOOPBACK);
    // Else it takes the name of the machine, which need not be the loopback.
    yarn.setBoolean(YarnConfiguration.YARN_MINICLUSTER_FIXED_PORTS, true);
    List<ServerSocket> taken = new ArrayList<>();
    for (String name : new String[] {
        YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_SCHEDULER_ADDRESS, YarnConfiguration.RM_ADMIN_ADDRESS,
        YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS, YarnConfiguration.RM_WEBAPP_ADDRESS,
        YarnConfiguration.NM_ADDRESS, YarnConfiguration.NM_LOCALIZER_ADDRESS, YarnConfiguration.NM_WEBAPP_ADDRESS,
        YarnConfiguration.NM_COLLECTOR_SERVICE_ADDRESS}) {
      ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName(LOOPBACK));
      taken.add(free);
      yarn.set(name, LOOPBACK + ":" + free.getLocalPort());
    }
    for (ServerSocket free : taken) {
      free.close();
    }
    yarn.setInt(YarnConfiguration.RM_SCHEDULER_MINIMUM_ALLOCATION_MB, 128);
    yarn.setInt(YarnConfiguration.NM_PMEM_MB, 8192);
    yarn.setInt(YarnConfiguration.YARN_MINICLUSTER_NM_PMEM_MB, 8192);
    yarn.setInt(YarnConfiguration.NM_VCORES, 8);
    // Memory is enforced as in a real cluster; address space is not memory. A full disk of the machine ends no container.
    yarn.setBoolean(YarnConfiguration.NM_PMEM_CHECK_ENABLED, true);
    yarn.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
    yarn.setBoolean(YarnConfiguration.NM_DISK_HEALTH_CHECK_ENABLE, false);
    yarn.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 100); // looked at once as it starts; else 90
    yarn.set(YarnConfiguration.NM_ENV_WHITELIST, "JAVA_HOME,PATH,HOME,LANG");
    // The artifact has no capacity-scheduler.xml.
    String queues = "yarn.scheduler.capacity.";
    yarn.set(queues + "root.queues", "default");
    yarn.set(queues + "root.default.capacity", "100");
    yarn.set(queues + "root.default.user-limit-factor", "1");
    yarn.set(queues + "root.default.maximum-capacity", "100");
    yarn.set(queues + "root.default.state", "RUNNING");
    yarn.set(queues + "root.default.acl_submit_applications", "*");
    yarn.set(queues + "root.default.acl_administer_queue", "*");
    yarn.set(queues + "maximum-am-resource-percent", "0.9");
    yarn.set(queues + "node-locality-delay", "-1");
    return yarn;
  }

  private static void write(Configuration configuration, File file) throws Exception {
    try (OutputStream out = new FileOutputStream(file)) {
      configuration.writeXml(out);
    }
  }
}
