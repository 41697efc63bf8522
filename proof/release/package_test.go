// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// testDeb installs the package in an empty tree with dpkg, runs the program, has the
// unit verified by systemd, removes the package, and purges it.
func (r release) testDeb(t *testing.T) {
	dpkg, root := proctest.Find(t, "dpkg", "dpkg"), t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644)
	do := func(args ...string) string {
		t.Helper() // the scripts run outside the tree, which has no shell, and know it as DPKG_ROOT
		options := []string{"--root=" + root, "--force-script-chrootless", "--force-not-root", "--log=" + filepath.Join(root, "log")}
		path := "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin" // dpkg wants ldconfig and start-stop-daemon
		return run(t, root, []string{path}, dpkg, append(options, args...)...)
	}
	deb := r.path("mete_0.9.0-rc.1_" + runtime.GOARCH + ".deb")
	if got := run(t, root, nil, proctest.Find(t, "dpkg-deb", "dpkg"), "--field", deb, "Version"); got != "0.9.0~rc.1\n" {
		t.Errorf("the package has version %q, want one that dpkg sorts before 0.9.0", got)
	}
	do("--install", deb)
	if verified := do("--verify", "mete"); verified != "" {
		t.Errorf("dpkg --verify: %s", verified)
	}

	if got := run(t, root, nil, filepath.Join(root, "usr/bin/mete"), "version"); !r.isStamped(got) {
		t.Errorf("mete version prints %q, want the version and the commit", got)
	}
	info, err := os.Stat(filepath.Join(root, "etc/mete/admin.token"))
	if err != nil || info.Size() != 64 || info.Mode().Perm() != 0o600 {
		t.Errorf("the admin token: %v, %v, want 64 bytes that only root can read", info, err)
	}
	r.verifyUnit(t, root)
	wantFiles(t, root, "dpkg --install", map[string]bool{
		"usr/share/man/man1/mete.1.gz": true, "usr/share/man/man1/mete-override-set.1.gz": true,
		"usr/share/bash-completion/completions/mete": true, "usr/share/zsh/vendor-completions/_mete": true,
	})

	settings := filepath.Join(root, "etc/mete/mete.yaml")
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	write(t, settings, append(text, "# mine\n"...), 0o644)
	do("--install", "--force-confold", deb)
	if kept, _ := os.ReadFile(settings); !strings.HasSuffix(string(kept), "# mine\n") {
		t.Error("an upgrade replaces changed settings")
	}
	// As systemd makes the state directory of a dynamic user.
	write(t, filepath.Join(root, "var/lib/private/mete/buckets"), nil, 0o600)
	if err := os.Symlink("private/mete", filepath.Join(root, "var/lib/mete")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "etc/mete/tls.pem"), nil, 0o600)
	do("--remove", "mete")
	wantFiles(t, root, "dpkg --remove", map[string]bool{
		"usr/bin/mete": false, "etc/mete/mete.yaml": true, "etc/mete/policy.yaml": true, "etc/mete/admin.token": true,
		"etc/mete/tls.pem": true, "var/lib/mete": true, "var/lib/private/mete/buckets": true,
	})
	do("--purge", "mete")
	wantFiles(t, root, "dpkg --purge", map[string]bool{
		"etc/mete/mete.yaml": false, "etc/mete/policy.yaml": false, "etc/mete/admin.token": false,
		"etc/mete/tls.pem": true, "var/lib/mete": false, "var/lib/private/mete": false, "var/lib/private": true,
	})
	if err := os.Remove(filepath.Join(root, "etc/mete/tls.pem")); err != nil {
		t.Fatal(err)
	}
	do("--install", deb)
	do("--purge", "mete")
	wantFiles(t, root, "dpkg --purge with no other files", map[string]bool{"etc/mete": false})
}

// wantFiles checks which files a command kept (true) and removed (false).
func wantFiles(t *testing.T, root, command string, want map[string]bool) {
	t.Helper()
	for name, kept := range want {
		if _, err := os.Lstat(filepath.Join(root, name)); (err == nil) != kept {
			t.Errorf("after %s, %s exists: %v, want %v", command, name, err == nil, kept)
		}
	}
}

// verifyUnit has systemd read the unit, with the program of the tree.
func (r release) verifyUnit(t *testing.T, root string) {
	t.Helper()
	unit, err := os.ReadFile(filepath.Join(root, "usr/lib/systemd/system/mete.service"))
	if err != nil {
		t.Fatal(err)
	}
	const start = "ExecStart=/usr/bin/mete "
	if !strings.Contains(string(unit), start) {
		t.Fatalf("the unit has no %q", start)
	}
	path := filepath.Join(t.TempDir(), "mete.service")
	write(t, path, []byte(strings.Replace(string(unit), start, "ExecStart="+filepath.Join(root, "usr/bin/mete")+" ", 1)), 0o644)
	output, err := exec.Command(proctest.Find(t, "systemd-analyze", "systemd"), "verify", "--man=no", path).CombinedOutput()
	if err != nil || len(output) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, output)
	}
}

// isStamped reports whether a text of mete version has the version and the commit.
func (r release) isStamped(text string) bool {
	return strings.HasPrefix(text, "mete "+version+" (commit "+r.commit[:12]+") go")
}

// testRPM reads the package with rpm: its digests, its fields, and its files. Then it
// installs and erases the package.
func (r release) testRPM(t *testing.T) {
	rpm := proctest.Find(t, "rpm", "rpm")
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	name := r.path("mete-0.9.0-rc.1-1." + arch + ".rpm")
	if got := run(t, r.dist, nil, rpm, "--checksig", "--nosignature", name); !strings.Contains(got, "digests OK") {
		t.Errorf("rpm --checksig: %s", got)
	}
	const fields = "%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{LICENSE}\n"
	if got, want := run(t, r.dist, nil, rpm, "--query", "--package", "--queryformat", fields, name), "mete 0.9.0~rc.1 1 "+arch+" Apache-2.0\n"; got != want {
		t.Errorf("rpm --query: %q, want %q", got, want)
	}
	files := run(t, r.dist, nil, rpm, "--query", "--package", "--dump", name)
	for _, want := range []string{
		`(?m)^/usr/bin/mete \d+ \d+ [0-9a-f]{64} 0100755 root root 0 `,
		`(?m)^/usr/lib/systemd/system/mete.service \d+ \d+ [0-9a-f]{64} 0100644 root root 0 `,
		`(?m)^/etc/mete/mete.yaml \d+ \d+ [0-9a-f]{64} 0100644 root root 1 `,
		`(?m)^/etc/mete/policy.yaml \d+ \d+ [0-9a-f]{64} 0100644 root root 1 `,
	} {
		if !regexp.MustCompile(want).MatchString(files) {
			t.Errorf("rpm --dump has no line like %s:\n%s", want, files)
		}
	}

	// The same program as in the archive.
	unpacked := t.TempDir()
	run(t, unpacked, nil, "tar", "-xzf", r.path("mete_0.9.0-rc.1_linux_"+runtime.GOARCH+".tar.gz"), "mete")
	sum, _, _ := strings.Cut(run(t, unpacked, nil, "sha256sum", "mete"), " ")
	if !strings.Contains(files, sum) {
		t.Errorf("the program of the package is not the one of the archive, %s:\n%s", sum, files)
	}
	for _, script := range []string{"admin.token", "disable --now mete.service", "daemon-reload"} {
		if got := run(t, r.dist, nil, rpm, "--query", "--package", "--scripts", name); !strings.Contains(got, script) {
			t.Errorf("rpm --scripts has no %q:\n%s", script, got)
		}
	}
	t.Run("erase", func(t *testing.T) { r.eraseRPM(t, rpm, name) })
}

// eraseRPM installs the package in an empty tree with rpm and erases it. The tree has no
// shell: the scripts of the package run outside, with the arguments that rpm gives them.
func (r release) eraseRPM(t *testing.T, rpm, name string) {
	root := t.TempDir()
	do := func(args ...string) {
		t.Helper()
		args = append([]string{"--root=" + root, "--noscripts", "--nodeps"}, args...)
		cmd := inNamespace(exec.Command(rpm, args...))
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("rpm %q: %v\n%s", args, err, output)
		}
	}
	script := func(tag, versions string) {
		t.Helper()
		text := run(t, r.dist, nil, rpm, "--query", "--package", "--queryformat", "%{"+tag+"}", name)
		run(t, root, []string{"DPKG_ROOT=" + root}, "/bin/sh", "-c", text, "sh", versions)
	}
	token := filepath.Join(root, "etc/mete/admin.token")

	do("--install", name)
	script("POSTIN", "1")
	before, err := os.ReadFile(token)
	if err != nil || len(before) != 64 {
		t.Fatalf("the admin token: %q, %v, want 64 bytes", before, err)
	}
	do("--verify", "mete")
	do("--install", "--replacepkgs", name)
	script("POSTIN", "2")
	script("PREUN", "1")
	script("POSTUN", "1")
	if after, err := os.ReadFile(token); err != nil || string(after) != string(before) {
		t.Errorf("an upgrade changes the admin token (%v)", err)
	}
	settings := filepath.Join(root, "etc/mete/mete.yaml")
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	write(t, settings, append(text, "# mine\n"...), 0o644)
	write(t, filepath.Join(root, "etc/mete/tls.pem"), nil, 0o600)
	write(t, filepath.Join(root, "var/lib/private/mete/buckets"), nil, 0o600)
	script("PREUN", "0")
	do("--erase", "mete")
	script("POSTUN", "0")
	wantFiles(t, root, "rpm --erase", map[string]bool{
		"usr/bin/mete": false, "usr/share/doc/mete": false, "etc/mete/policy.yaml": false, "etc/mete/admin.token": false,
		"etc/mete/mete.yaml.rpmsave": true, "etc/mete/tls.pem": true, "var/lib/private/mete/buckets": true,
	})
	for _, own := range []string{"mete.yaml.rpmsave", "tls.pem"} {
		if err := os.Remove(filepath.Join(root, "etc/mete", own)); err != nil {
			t.Fatal(err)
		}
	}
	do("--install", name)
	script("POSTIN", "1")
	do("--erase", "mete")
	wantFiles(t, root, "rpm --erase with no other files", map[string]bool{"etc/mete": false})
}

// inNamespace makes an ordinary user root in a namespace: rpm --root calls chroot.
func inNamespace(cmd *exec.Cmd) *exec.Cmd {
	if os.Geteuid() != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}
	}
	return cmd
}
