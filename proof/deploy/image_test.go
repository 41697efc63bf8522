// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// nobody is the user of the image.
const nobody = 65532

// stages are those of the Dockerfile, by Docker's own parser.
func stages(t *testing.T) (build, final instructions.Stage) {
	t.Helper()
	parsed, err := parser.Parse(bytes.NewReader(read(t, "docker", "Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("Dockerfile: %s", w.Short)
	}
	all, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "build" {
		t.Fatalf("%d stages, want build and the image", len(all))
	}
	return all[0], all[1]
}

// only returns the one command of a kind in a stage.
func only[T any](t *testing.T, s instructions.Stage) T {
	t.Helper()
	var found []T
	for _, c := range s.Commands {
		if command, ok := c.(T); ok {
			found = append(found, command)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d commands %T in stage %q, want 1", len(found), *new(T), s.Name)
	}
	return found[0]
}

func TestImage_Form(t *testing.T) {
	_, image := stages(t)
	if image.BaseName != "scratch" {
		t.Errorf("the image is from %s, want scratch", image.BaseName)
	}
	if user := only[*instructions.UserCommand](t, image).User; user != "65532:65532" {
		t.Errorf("the user is %q: a number other than 0 lets Kubernetes see that it is not root", user)
	}
	s := settingsOf(t, read(t, "docker", "mete.yaml"))
	if got, want := only[*instructions.ExposeCommand](t, image).Ports, []string{port(t, s.Listen), port(t, s.AdminListen)}; !slices.Equal(got, want) {
		t.Errorf("EXPOSE %q, and the settings listen on %q", got, want)
	}
	if only[*instructions.EntrypointCommand](t, image).PrependShell || only[*instructions.CmdCommand](t, image).PrependShell {
		t.Error("a shell is between the signals and the program, and there is none in the image")
	}
	check := only[*instructions.HealthCheckCommand](t, image).Health.Test
	if check[0] != "CMD" {
		t.Errorf("HEALTHCHECK %q needs a shell", check)
	}
	if asked := check[len(check)-1]; !strings.HasSuffix(asked, ":"+port(t, s.AdminListen)) {
		t.Errorf("HEALTHCHECK asks %s, where clients can have all connections; want the port of %s", asked, s.AdminListen)
	}
	if within := s.ending(t); within.Seconds() >= 10 {
		t.Errorf("it may take %v to end: docker stop kills after 10s", within)
	}
}

// TestImage_Runs builds the program by the commands of the Dockerfile, from what it
// lets into the build, puts the image's files into an empty directory and
// runs it there: as its user, with that directory for root.
func TestImage_Runs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("as an ordinary user, in a user namespace")
	}
	build, image := stages(t)
	source, built := buildContext(t), t.TempDir()
	runBuild(t, build, source, built)
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // of another user
		t.Fatal(err)
	}
	assemble(t, image, source, built, root)

	entry := only[*instructions.EntrypointCommand](t, image).CmdLine
	addr, admin := proctest.FreeAddr(t), proctest.FreeAddr(t)
	args := slices.Concat(entry, only[*instructions.CmdCommand](t, image).CmdLine, []string{"--listen", addr, "--admin-listen", admin})
	server := inside(root, args...)
	server.Env = []string{"METE_ADMIN_TOKEN=" + adminToken}
	p := proctest.Start(t, server)
	p.WaitReady(meted.Patience, proctest.HTTP("http://"+addr+"/readyz"))

	check := only[*instructions.HealthCheckCommand](t, image).Health.Test[1:]
	check = slices.Concat(check, []string{"--server", "http://" + admin}) // in the place of its own port
	if output, err := inside(root, check...).CombinedOutput(); err != nil {
		t.Errorf("HEALTHCHECK: %v\n%s", err, output)
	}
	for _, args := range [][]string{ // as by docker exec in doc/deploy.md
		{"override", "set", "--action", "block", "--match", "header:x-api-key=k1", "--expires", "2h", "--reason", "scrapes the catalog", "--author", "kim"},
		{"override", "list"},
	} {
		operate := inside(root, slices.Concat(entry, args, []string{"--server", "http://" + admin})...)
		operate.Env = []string{"METE_TOKEN=" + adminToken}
		if output, err := operate.CombinedOutput(); err != nil || !strings.Contains(string(output), "block header:x-api-key=k1") && !strings.Contains(string(output), "kim") {
			t.Errorf("mete %q in the container: %v\n%s", args, err, output)
		}
	}
	if status := get(t, "http://"+admin+"/metrics", adminToken); status != 200 {
		t.Errorf("/metrics with the token: status %d", status)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if err := inside(root, check...).Run(); err == nil {
		t.Error("HEALTHCHECK finds a server healthy that has ended")
	}
}

// runBuild runs the commands of the build stage, with the directories of this test
// in the place of the stage's.
func runBuild(t *testing.T, build instructions.Stage, source, built string) {
	t.Helper()
	env := os.Environ()
	for _, pair := range only[*instructions.EnvCommand](t, build).Env {
		env = append(env, pair.String())
	}
	places := strings.NewReplacer(only[*instructions.WorkdirCommand](t, build).Path, source, "/out/", built+"/")
	for _, c := range build.Commands {
		run, ok := c.(*instructions.RunCommand)
		if !ok {
			continue
		}
		for _, line := range run.CmdLine {
			cmd := exec.Command("sh", "-euc", places.Replace(line))
			cmd.Dir, cmd.Env = source, env
			if output, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("RUN %s: %v\n%s", line, err, output)
			}
		}
	}
}

// assemble does what the COPY commands of the image say.
func assemble(t *testing.T, image instructions.Stage, source, built, root string) {
	t.Helper()
	for _, c := range image.Commands {
		command, ok := c.(*instructions.CopyCommand)
		if !ok {
			continue
		}
		for _, from := range command.SourcePaths {
			to := command.DestPath
			if strings.HasSuffix(to, "/") {
				to += filepath.Base(from)
			}
			switch {
			case command.From == "" || strings.HasPrefix(from, "/out/"):
				from = filepath.Join(map[bool]string{true: source, false: built}[command.From == ""], strings.TrimPrefix(from, "/out"))
			case strings.HasPrefix(from, "/etc/ssl/"): // Debian's, and not of this machine
				write(t, filepath.Join(root, to), "")
				continue
			}
			copyFile(t, from, filepath.Join(root, to))
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, string(data))
	if err := os.Chmod(to, info.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
}

// inside is a command in a directory that is its root, as the image's user. The
// environment is empty.
func inside(root string, args ...string) *exec.Cmd {
	cmd := &exec.Cmd{Path: args[0], Args: args, Dir: "/", Env: []string{}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: os.Getegid(), Size: 1}}
	return cmd
}
