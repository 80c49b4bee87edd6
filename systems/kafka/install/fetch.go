package install

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// FetchOptions say where from and where to.
type FetchOptions struct {
	Cache   string // "" DefaultCache
	Version string // "" DefaultVersion
	// Repository is the address of a Maven repository to be asked instead of Maven Central; "": as Maven's own settings say (mirrors, proxies, ~/.m2/settings.xml).
	Repository string
}

// artifact is the Maven coordinates of one thing.
type artifact struct {
	Group    string `xml:"groupId"`
	Artifact string `xml:"artifactId"`
	Version  string `xml:"version"`
}

// coordinates are what a version is made of; the rest follows from their own dependencies. Each brings the logging that its broker expects.
func coordinates(version string) []artifact {
	core := artifact{"org.apache.kafka", "kafka_2.13", version}
	if (Installation{Version: version}).Since(4, 0) {
		return []artifact{core, {"org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"}, {"org.apache.logging.log4j", "log4j-core", "2.24.3"}}
	}
	return []artifact{core, {"org.slf4j", "slf4j-reload4j", "1.7.36"}}
}

// copyJars is the step of Maven that does the work.
const copyJars = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// Fetch brings a version into the cache, by Maven, and gives it; fresh tells that it was not there. What is there already and is whole stays. Nothing is in the cache under its
// name before every file of it has the checksum that is built into this program.
func Fetch(ctx context.Context, o FetchOptions) (in Installation, fresh bool, err error) {
	if o.Version == "" {
		o.Version = DefaultVersion
	}
	if o.Cache, err = resolve(o.Cache); err != nil {
		return in, false, err
	}
	sums, err := sumsOf(o.Version)
	if err != nil {
		return in, false, err
	}
	final := jarsDir(o.Cache, o.Version)
	if _, err := os.Stat(final); err == nil {
		if err := verify(final, sums); err == nil {
			in, err = Find(o.Cache, o.Version)
			return in, false, err
		}
		if err := os.RemoveAll(final); err != nil { // damaged, or of an older ackproof
			return in, false, fmt.Errorf("remove what is damaged in the cache: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return in, false, fmt.Errorf("make the cache: %w", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(final), "fetching-")
	if err != nil {
		return in, false, fmt.Errorf("make a folder in the cache: %w", err)
	}
	defer os.RemoveAll(work)
	jars := filepath.Join(work, "jars")
	if err := maven(ctx, o, work, jars); err != nil {
		return in, false, err
	}
	if err := verify(jars, sums); err != nil {
		return in, false, fmt.Errorf("fetch Kafka %s: %w", o.Version, err)
	}
	// Whoever runs the broker may be somebody else than who fetched it.
	if err := os.Chmod(jars, 0o755); err != nil {
		return in, false, fmt.Errorf("fetch Kafka %s: %w", o.Version, err)
	}
	if err := os.Rename(jars, final); err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) { // another fetch was quicker
		return in, false, fmt.Errorf("put Kafka %s into the cache: %w", o.Version, err)
	}
	in, err = Find(o.Cache, o.Version)
	return in, err == nil, err
}

// maven runs Maven, which knows the user's mirrors, proxies and credentials.
func maven(ctx context.Context, o FetchOptions, work, jars string) error {
	program, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("fetch Kafka %s: %w: expected Maven (mvn) on the PATH; without it, unpack a release of Apache Kafka and name its folder with --path", o.Version, err)
	}
	pom, err := project(o)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "pom.xml"), pom, 0o644); err != nil {
		return fmt.Errorf("fetch Kafka %s: %w", o.Version, err)
	}
	cmd := exec.CommandContext(ctx, program, "--batch-mode", "--quiet", "--strict-checksums", copyJars, "-DoutputDirectory="+jars, "-DincludeScope=runtime")
	cmd.Dir = work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // mvn is a script: the end must reach what it started
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("fetch Kafka %s: mvn: %w; expected a network, or what it asks for in Maven's local repository (~/.m2). Behind a mirror, name it in ~/.m2/settings.xml or with --repository; "+
			"without a network, unpack a release of Apache Kafka and name its folder with --path. Maven said:\n%s", o.Version, err, firstLines(said.String(), 6))
	}
	return nil
}

// pom is a Maven project of nothing but dependencies.
type pom struct {
	XMLName      xml.Name      `xml:"http://maven.apache.org/POM/4.0.0 project"`
	Model        string        `xml:"modelVersion"`
	Group        string        `xml:"groupId"`
	Artifact     string        `xml:"artifactId"`
	Version      string        `xml:"version"`
	Packaging    string        `xml:"packaging"`
	Repositories *repositories `xml:"repositories"`
	Plugins      *repositories `xml:"pluginRepositories"`
	Dependencies []artifact    `xml:"dependencies>dependency"`
}

// repositories are those of artifacts, or those of plugins.
type repositories struct {
	Artifacts []repository `xml:"repository"`
	Plugins   []repository `xml:"pluginRepository"`
}

type repository struct {
	ID  string `xml:"id"`
	URL string `xml:"url"`
}

func project(o FetchOptions) ([]byte, error) {
	p := pom{Model: "4.0.0", Group: "ackproof", Artifact: "kafka", Version: "1", Packaging: "pom", Dependencies: coordinates(o.Version)}
	if o.Repository != "" { // under the name of the built-in one, in its place
		one := []repository{{"central", o.Repository}}
		p.Repositories, p.Plugins = &repositories{Artifacts: one}, &repositories{Plugins: one}
	}
	raw, err := xml.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the Maven project: %w", err)
	}
	return raw, nil
}

func firstLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return "  | " + strings.Join(lines[:min(n, len(lines))], "\n  | ")
}
