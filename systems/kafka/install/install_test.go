package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stub puts a program named mvn on the PATH that does what the script says in the place of Maven.
func stub(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mvn"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// java is enough of an installation of Java for one to be found.
func java(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "bin", "java"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JAVA_HOME", home)
}

func left(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestSumsOfAllVersionsCanBeRead(t *testing.T) {
	if v := Versions(); len(v) == 0 || v[0] != DefaultVersion {
		t.Errorf("versions %v, expected %s first", v, DefaultVersion)
	}
	for _, v := range Versions() {
		sums, err := sumsOf(v)
		if err != nil || len(sums) < 40 {
			t.Errorf("Kafka %s: %d sums, %v", v, len(sums), err)
		}
		var jars []string
		for _, s := range sums {
			jars = append(jars, s.name)
		}
		if versionOf(jars) != v {
			t.Errorf("Kafka %s: its own jar says %q", v, versionOf(jars))
		}
	}
}

func TestWhatIsNotThereIsExplained(t *testing.T) {
	java(t)
	_, err := Find(t.TempDir(), "")
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "ackproof fetch kafka --version "+DefaultVersion) {
		t.Errorf("error %v, expected how to get it", err)
	}
	if _, err := Find(t.TempDir(), "0.8.1"); err == nil || !strings.Contains(err.Error(), "expected one of: "+DefaultVersion) {
		t.Errorf("error %v, expected the versions that there are", err)
	}
	if _, err := FromPath(t.TempDir(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "expected the unpacked release") {
		t.Errorf("error %v, expected what was looked for", err)
	}
}

func TestNothingIsInTheCacheBeforeItIsVerified(t *testing.T) {
	java(t)
	for _, c := range []struct{ name, script, want string }{
		{"no network", "echo 'Could not transfer artifact: Connection refused'; exit 1", "Connection refused"},
		{"nothing comes", "exit 0", "verify"},
		{"something else comes", `for a in "$@"; do case $a in -DoutputDirectory=*) d=${a#*=}; mkdir -p $d; for j in HdrHistogram-2.2.2 kafka_2.13-4.4.0; do echo no >$d/$j.jar; done;; esac; done`, "expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stub(t, c.script)
			cache := t.TempDir()
			_, _, err := Fetch(context.Background(), FetchOptions{Cache: cache})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %q in it", err, c.want)
			}
			if rest := left(t, filepath.Join(cache, "kafka", DefaultVersion)); len(rest) > 0 {
				t.Errorf("left in the cache: %v", rest)
			}
		})
	}
}

func TestMavenIsAskedForWhatTheVersionNeeds(t *testing.T) {
	for _, c := range []struct {
		o    FetchOptions
		want []string
		not  string
	}{
		{FetchOptions{Version: "4.4.0"}, []string{"<artifactId>kafka_2.13</artifactId>", "<version>4.4.0</version>", "log4j-core"}, "<repositories>"},
		{FetchOptions{Version: "3.9.1", Repository: "https://maven.example/a&b"}, []string{"<version>3.9.1</version>", "slf4j-reload4j", "<id>central</id>", "https://maven.example/a&amp;b"}, "log4j-core"},
	} {
		raw, err := project(c.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(string(raw), w) {
				t.Errorf("%+v: no %q in\n%s", c.o, w, raw)
			}
		}
		if strings.Contains(string(raw), c.not) {
			t.Errorf("%+v: %q in\n%s", c.o, c.not, raw)
		}
	}
}

func TestAnOwnInstallation(t *testing.T) {
	java(t)
	release := filepath.Join(t.TempDir(), "kafka [4]")
	if err := os.MkdirAll(filepath.Join(release, "libs"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, j := range []string{"kafka_2.13-4.2.1.jar", "kafka_2.13-4.2.1-javadoc.jar", "b.jar", "a.jar", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(release, "libs", j), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cache := t.TempDir()
	in, err := FromPath(cache, release)
	if err != nil {
		t.Fatal(err)
	}
	if in.Version != "4.2.1" || len(in.Jars) != 4 || filepath.Base(in.Jars[0]) != "a.jar" || !strings.HasPrefix(in.Lasting, filepath.Join(cache, "kafka", "4.2.1-own-")) {
		t.Errorf("installation %+v", in)
	}
	if !in.Since(4, 2) || !in.Since(3, 9) || in.Since(4, 3) {
		t.Errorf("version %s is taken for another", in.Version)
	}
}
