import edu.anu.spice.Evaluation;
import edu.anu.spice.SceneGraph;
import edu.anu.spice.SpiceParser;
import edu.anu.spice.TupleSet;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import org.json.simple.JSONArray;
import org.json.simple.JSONObject;
import org.json.simple.JSONValue;

/**
 * Scores examples with the original SPICE 1.0 on any Java from 8 on.
 *
 * <p>Each line of standard input is {"id": ..., "candidate": text, "references": [text, ...]}; for each, a line of
 * standard output gives its id, counts and F, and the tuples of the candidate. There may be no references.
 *
 * <p>The original program needs three things that newer Java lacks, all of them beside the point: a cache on disk (a
 * native library, and reflection into Java's own classes) and a JavaScript engine, which indents its output. Its parser
 * takes null for "no cache", and its scoring classes are called one by one here, so that none of it is touched.
 */
public final class SpiceDriver {
  private static final int BATCH = 500; // texts that are parsed, and in memory, at a time
  private static final boolean MERGE = true; // of synonyms: the original's default

  private SpiceDriver() {}

  public static void main(String[] arguments) throws Exception {
    PrintStream results = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
    System.setOut(System.err); // whatever the libraries print
    List<JSONObject> examples = read();
    Parser parser = new Parser(Runtime.getRuntime().availableProcessors());
    Map<String, ArrayList<ArrayList<String>>> tuples = parser.parse(different(examples));
    for (JSONObject example : examples) {
      results.println(score(parser, example, tuples).toJSONString());
    }
    results.flush();
    System.exit(results.checkError() ? 3 : 0); // the parser's threads would keep the program alive
  }

  private static List<JSONObject> read() throws Exception {
    List<JSONObject> examples = new ArrayList<>();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      examples.add((JSONObject) JSONValue.parseWithException(line));
    }
    return examples;
  }

  private static List<String> different(List<JSONObject> examples) {
    LinkedHashSet<String> texts = new LinkedHashSet<>();
    for (JSONObject example : examples) {
      texts.add((String) example.get("candidate"));
      for (Object reference : (JSONArray) example.get("references")) {
        texts.add((String) reference);
      }
    }
    return new ArrayList<>(texts);
  }

  @SuppressWarnings("unchecked") // json-simple knows no generics
  private static JSONObject score(
      Parser parser, JSONObject example, Map<String, ArrayList<ArrayList<String>>> tuples) {
    List<ArrayList<String>> candidate = tuples.get((String) example.get("candidate"));
    List<ArrayList<String>> merged = new ArrayList<>();
    for (Object reference : (JSONArray) example.get("references")) {
      merged.addAll(tuples.get((String) reference));
    }
    Evaluation found = new Evaluation(parser.graph(candidate), parser.graph(merged), false, MERGE);
    JSONObject result = new JSONObject();
    result.put("id", example.get("id"));
    result.put("tp", found.tp);
    result.put("fp", found.fp);
    result.put("fn", found.fn);
    result.put("f", found.f);
    result.put("candidate", candidate);
    return result;
  }

  /** The original parser without its cache; what is used of it is open to subclasses only. */
  private static final class Parser extends SpiceParser {
    Parser(int threads) {
      super(null, threads, MERGE);
    }

    /** Tuples of each text; blank ones have none and are not shown to the parser. */
    Map<String, ArrayList<ArrayList<String>>> parse(List<String> all) {
      Map<String, ArrayList<ArrayList<String>>> tuples = new HashMap<>();
      List<String> texts = new ArrayList<>();
      for (String text : all) {
        if (text.trim().isEmpty()) {
          tuples.put(text, new ArrayList<>());
        } else {
          texts.add(text);
        }
      }
      for (int start = 0; start < texts.size(); start += BATCH) {
        List<String> batch = texts.subList(start, Math.min(start + BATCH, texts.size()));
        tuples.putAll(generateTuples(batch));
        System.err.println("parsed " + (start + batch.size()) + " of " + texts.size() + " texts");
      }
      return tuples;
    }

    TupleSet graph(List<ArrayList<String>> tuples) {
      SceneGraph graph = new SceneGraph(synonyms, MERGE);
      for (ArrayList<String> tuple : tuples) {
        graph.addTuple(tuple);
      }
      return new TupleSet(graph);
    }
  }
}
