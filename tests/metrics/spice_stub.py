"""A stand-in for CoreNLP 3.6.0, which is not to be had offline: enough of it for SPICE's own classes to run.

Its annotator knows a few adjectives and verbs, takes every other word for a noun, and makes the dependency graph that
CoreNLP would make of 'young man ride horse'. Everything else (patterns, graphs, tuples, scores) is the original's code,
on the classes of CoreNLP 3.4.1 that pycocoevalcap ships for its tokeniser. Two things are so not covered by tests that
use it: real parses, and SPICE's `SemanticGraphEnhancer`, which needs classes of 3.6.0; the stub's does nothing.
"""

import os
import pathlib
import shutil
import subprocess
import zipfile

from evil_jax.metrics import resources
from evil_jax.metrics._spice import official

SOURCES = {
    'edu/stanford/nlp/pipeline/StanfordCoreNLP.java': """
package edu.stanford.nlp.pipeline;

import edu.stanford.nlp.ling.*;
import edu.stanford.nlp.semgraph.*;
import edu.stanford.nlp.trees.EnglishGrammaticalRelations;
import edu.stanford.nlp.trees.GrammaticalRelation;
import edu.stanford.nlp.util.*;
import java.util.*;

public class StanfordCoreNLP extends AnnotationPipeline {
  private static final List<String> VERBS = Arrays.asList("ride", "wear", "hold");
  private static final List<String> ADJECTIVES = Arrays.asList("young", "brown", "big", "élégant");

  public StanfordCoreNLP(Properties properties) {
    System.out.println("a line that libraries print");
    if (!"tokenize,ssplit,parse,lemma,ner".equals(properties.getProperty("annotators"))) {
      throw new IllegalArgumentException("other annotators");
    }
  }

  @Override
  public void annotate(Iterable<Annotation> annotations) {
    for (Annotation annotation : annotations) {
      String text = annotation.get(CoreAnnotations.TextAnnotation.class);
      if (text.trim().isEmpty()) {
        throw new IllegalStateException("the parser got a blank text");
      }
      CoreMap sentence = new ArrayCoreMap();
      sentence.set(SemanticGraphCoreAnnotations.CollapsedCCProcessedDependenciesAnnotation.class, graph(text));
      annotation.set(CoreAnnotations.SentencesAnnotation.class, Collections.singletonList(sentence));
    }
  }

  private static SemanticGraph graph(String text) {
    SemanticGraph graph = new SemanticGraph();
    IndexedWord verb = null;
    IndexedWord subject = null;
    List<IndexedWord> adjectives = new ArrayList<>();
    int index = 1;
    for (String form : text.trim().split("\\\\s+")) {
      IndexedWord word = new IndexedWord();
      word.setIndex(index++);
      word.setSentIndex(0);
      word.setDocID("d");
      word.setWord(form);
      word.setValue(form);
      word.setLemma(form.toLowerCase());
      word.setTag(VERBS.contains(form) ? "VB" : ADJECTIVES.contains(form) ? "JJ" : "NN");
      word.setNER("O");
      graph.addVertex(word);
      if (word.tag().equals("JJ")) {
        adjectives.add(word);
        continue;
      }
      if (word.tag().equals("VB")) {
        verb = word;
        edge(graph, verb, subject, EnglishGrammaticalRelations.NOMINAL_SUBJECT);
        continue;
      }
      for (IndexedWord adjective : adjectives) {
        edge(graph, word, adjective, EnglishGrammaticalRelations.ADJECTIVAL_MODIFIER);
      }
      adjectives.clear();
      if (verb != null) {
        edge(graph, verb, word, EnglishGrammaticalRelations.DIRECT_OBJECT);
      } else if (subject == null) {
        subject = word;
      }
    }
    graph.addRoot(verb != null ? verb : graph.vertexSet().iterator().next());
    return graph;
  }

  private static void edge(SemanticGraph graph, IndexedWord from, IndexedWord to, GrammaticalRelation relation) {
    if (to != null) {
      graph.addEdge(from, to, relation, 1.0, false);
    }
  }
}
""",
    'edu/stanford/nlp/trees/UniversalEnglishGrammaticalRelations.java': """
package edu.stanford.nlp.trees;

public class UniversalEnglishGrammaticalRelations {
  public static final GrammaticalRelation CASE_MARKER = EnglishGrammaticalRelations.PREPOSITIONAL_MODIFIER;
  public static final GrammaticalRelation MULTI_WORD_EXPRESSION = EnglishGrammaticalRelations.MULTI_WORD_EXPRESSION;
  public static final GrammaticalRelation NUMERIC_MODIFIER = EnglishGrammaticalRelations.NUMERIC_MODIFIER;
  public static final GrammaticalRelation PHRASAL_VERB_PARTICLE = EnglishGrammaticalRelations.PHRASAL_VERB_PARTICLE;
}
""",
    'edu/stanford/nlp/scenegraph/SemanticGraphEnhancer.java': """
package edu.stanford.nlp.scenegraph;

import edu.stanford.nlp.semgraph.SemanticGraph;

public class SemanticGraphEnhancer {
  public static void processQuanftificationModifiers(SemanticGraph graph) {}
  public static void collapseCompounds(SemanticGraph graph) {}
  public static void collapseParticles(SemanticGraph graph) {}
  public static void resolvePronouns(SemanticGraph graph) {}
}
""",
}

ORACLE = """
import edu.anu.spice.*;
import edu.cmu.meteor.aligner.SynonymDictionary;
import edu.cmu.meteor.util.Constants;
import java.io.*;
import java.net.URL;
import java.util.*;
import org.json.simple.*;

public class Oracle {
  public static void main(String[] arguments) throws Exception {
    String folder = Constants.DEFAULT_SYN_DIR_URL + "/english.";
    SynonymDictionary synonyms = new SynonymDictionary(
        new URL(folder + "exceptions"), new URL(folder + "synsets"), new URL(folder + "relations"));
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
    for (String line; (line = lines.readLine()) != null; ) {
      JSONArray pair = (JSONArray) JSONValue.parse(line);
      Evaluation e = new Evaluation(set(pair.get(0), synonyms), set(pair.get(1), synonyms), false, true);
      System.out.println("[" + e.tp + "," + e.fp + "," + e.fn + "," + e.pr + "," + e.re + "," + e.f + "]");
    }
  }

  private static TupleSet set(Object tuples, SynonymDictionary synonyms) {
    SceneGraph graph = new SceneGraph(synonyms, true);
    for (Object tuple : (JSONArray) tuples) {
      graph.addTuple(new ArrayList<String>((JSONArray) tuple));
    }
    return new TupleSet(graph);
  }
}
"""


def compiler() -> str:
    """Path of javac. Raises Unavailable."""
    found = shutil.which(pathlib.Path(resources.java()).resolve().with_name('javac'))
    if not found:
        raise resources.Unavailable('no Java compiler beside Java')
    return found


def classpath() -> list[pathlib.Path]:
    """The original's jars and CoreNLP 3.4.1 in the place of 3.6.0. Raises Unavailable."""
    package = resources.pycocoevalcap()
    spice = package / 'spice'
    return [package / 'tokenizer' / 'stanford-corenlp-3.4.1.jar', spice / 'spice-1.0.jar', *spice.glob('lib/*.jar')]


def build(folder: pathlib.Path, sources: dict[str, str]) -> pathlib.Path:
    """Compiles sources into folder/classes."""
    classes = folder / 'classes'
    classes.mkdir(parents=True)
    for name, text in sources.items():
        path = folder / 'source' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
    command = [
        compiler(), '-encoding', 'UTF-8', '-source', '8', '-target', '8', '-nowarn', '-Xlint:none', '-d', str(classes),
        '-cp', os.pathsep.join(map(str, classpath())), *(str(folder / 'source' / name) for name in sources),
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=120, env=os.environ | {'LC_ALL': 'C.UTF-8'}, capture_output=True)
    return classes


def corenlp(folder: pathlib.Path, stub: bool) -> pathlib.Path:
    """A folder with the two jars' names: CoreNLP 3.4.1, with or without the stub before it, and no models."""
    home = folder / 'corenlp with blanks é'
    home.mkdir(parents=True)
    with zipfile.ZipFile(home / official.CORENLP[1], 'w') as jar:
        jar.writestr('META-INF/MANIFEST.MF', 'Manifest-Version: 1.0\n')
    if not stub:
        shutil.copy(classpath()[0], home / official.CORENLP[0])
        return home
    classes = build(folder / 'stub', SOURCES)
    with zipfile.ZipFile(classpath()[0]) as whole, zipfile.ZipFile(home / official.CORENLP[0], 'w') as jar:
        ours = {path.relative_to(classes).as_posix(): path for path in classes.rglob('*.class')}
        for name in whole.namelist():
            if name.endswith('.class') and name not in ours and not name.endswith('/'):
                jar.writestr(name, whole.read(name))
        for name, path in ours.items():
            jar.write(path, name)
    return home
