// Package install knows where Kafka's programs are on this machine, and brings them here: jars of a released version from Maven Central into the cache, or the folder of an
// own installation. It runs no broker. Start reading at Installation.
package install

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Installation is Kafka on this machine.
type Installation struct {
	Version string   // "4.4.0"
	Jars    []string // the class path: jars only, absolute, in a fixed order, which an archive of classes insists on
	Java    string   // the program
	// Lasting is a folder that outlives runs, for what is made once per installation; it is made when it is needed.
	Lasting string
}

// DefaultVersion is what is taken if nobody says otherwise.
const DefaultVersion = "4.4.0"

// DefaultCache is the folder of everything that ackproof keeps between runs: the user's own cache folder, on Linux ~/.cache/ackproof.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder: %w (expected --cache, or HOME to be set)", err)
	}
	return filepath.Join(dir, "ackproof"), nil
}

// ErrMissing: the version is not in the cache.
var ErrMissing = errors.New("is not in the cache")

// Find gives a version out of the cache; "" is DefaultVersion, and the cache "" DefaultCache. The error wraps ErrMissing and says how to get it.
func Find(cache, version string) (Installation, error) {
	if version == "" {
		version = DefaultVersion
	}
	cache, err := resolve(cache)
	if err != nil {
		return Installation{}, err
	}
	sums, err := sumsOf(version)
	if err != nil {
		return Installation{}, err
	}
	dir := jarsDir(cache, version)
	if _, err := os.Stat(dir); err != nil {
		return Installation{}, fmt.Errorf("version %s of Kafka %w %s: expected it to be fetched first (ackproof fetch kafka --version %s), or an own installation (--path)", version, ErrMissing, cache, version)
	}
	in := Installation{Version: version, Lasting: filepath.Join(cache, "kafka", version)}
	for _, s := range sums {
		in.Jars = append(in.Jars, filepath.Join(dir, s.name))
	}
	return in.withJava()
}

// FromPath gives an own installation: a folder with libs/ as the Apache project publishes it, or with the jars themselves.
func FromPath(cache, path string) (Installation, error) {
	cache, err := resolve(cache)
	if err != nil {
		return Installation{}, err
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return Installation{}, fmt.Errorf("own installation of Kafka: %w", err)
	}
	in := Installation{}
	for _, dir := range []string{filepath.Join(path, "libs"), path} {
		jars, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.jar"))
		if err != nil {
			return in, fmt.Errorf("own installation of Kafka in %s: %w", path, err)
		}
		if version := versionOf(jars); version != "" {
			slices.Sort(jars)
			in.Version, in.Jars = version, jars
			break
		}
	}
	if in.Version == "" {
		return in, fmt.Errorf("own installation of Kafka: no kafka_2.13-VERSION.jar in %s or its libs, expected the unpacked release of Apache Kafka", path)
	}
	place := sha256.Sum256([]byte(path))
	in.Lasting = filepath.Join(cache, "kafka", fmt.Sprintf("%s-own-%x", in.Version, place[:6]))
	return in.withJava()
}

// escapeGlob makes a path mean itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

var coreJar = regexp.MustCompile(`^kafka_2\.1[0-9]-([0-9][0-9A-Za-z.-]*)\.jar$`)

// versionOf is the version that the name of Kafka's own jar tells, "" if it is not among them.
func versionOf(jars []string) string {
	for _, j := range jars {
		if m := coreJar.FindStringSubmatch(filepath.Base(j)); m != nil && !strings.Contains(m[1], "-") {
			return m[1]
		}
	}
	return ""
}

// Since tells whether this is version major.minor or a later one.
func (in Installation) Since(major, minor int) bool {
	var a, b int
	if _, err := fmt.Sscanf(in.Version, "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}

// ClassPath is the class path as java takes it.
func (in Installation) ClassPath() string {
	return strings.Join(in.Jars, string(os.PathListSeparator))
}

func (in Installation) withJava() (Installation, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		in.Java = filepath.Join(home, "bin", "java")
		if _, err := os.Stat(in.Java); err != nil {
			return in, fmt.Errorf("find java: %w (JAVA_HOME says where, expected a Java of version 17 or later there)", err)
		}
		return in, nil
	}
	var err error
	if in.Java, err = exec.LookPath("java"); err != nil {
		return in, fmt.Errorf("find java: %w (expected a Java of version 17 or later on the PATH, or JAVA_HOME)", err)
	}
	return in, nil
}

func resolve(cache string) (string, error) {
	if cache == "" {
		return DefaultCache()
	}
	abs, err := filepath.Abs(cache)
	if err != nil {
		return "", fmt.Errorf("cache folder %q: %w", cache, err)
	}
	return abs, nil
}

func jarsDir(cache, version string) string { return filepath.Join(cache, "kafka", version, "jars") }
