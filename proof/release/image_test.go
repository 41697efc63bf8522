// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/meted"
)

// user is the one of the image.
const user = 65532

// token is the admin token in the containers of these tests.
const token = "correct-horse-battery-staple"

// testImage validates the OCI layout, and runs the image of this machine.
func (r release) testImage(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, nil, "tar", "-xf", r.path("mete_0.9.0-rc.1_image.tar"))
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Error(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(manifest.Manifests); n != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != version {
		t.Fatalf("index.json has %+v, want one index that is named %s", manifest.Manifests, version)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, m := range manifests.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images[m.Platform.String()] = image
	}
	if got, want := slices.Sorted(maps.Keys(images)), []string{"linux/amd64", "linux/arm64"}; !slices.Equal(got, want) {
		t.Fatalf("images for %q, want %q", got, want)
	}
	for platform, image := range images {
		t.Run(platform, func(t *testing.T) { r.testConfig(t, platform, image) })
	}
	t.Run("runs", func(t *testing.T) { r.runImage(t, images["linux/"+runtime.GOARCH]) })
}

// testConfig checks what a container gets from the image.
func (r release) testConfig(t *testing.T, platform string, image v1.Image) {
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.OS + "/" + config.Architecture; got != platform {
		t.Errorf("the image for %s is configured for %s", platform, got)
	}
	c := config.Config
	if want := fmt.Sprintf("%d:%d", user, user); c.User != want {
		t.Errorf("user %q, want %q", c.User, want)
	}
	for name, want := range map[string]string{"version": version, "revision": r.commit, "licenses": "Apache-2.0", "source": "https://" + module} {
		if got := c.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	if c.Healthcheck == nil || !slices.Equal(c.Healthcheck.Test, []string{"CMD", "/mete", "health", "--server", "http://127.0.0.1:8081"}) {
		t.Errorf("health check %+v, want mete health at the admin port", c.Healthcheck)
	}

	var settings struct {
		Listen      string `json:"listen"`
		AdminListen string `json:"admin_listen"`
		Timeouts    struct{ Notice, Drain string }
	}
	if err := yaml.Unmarshal(readFile(t, image, "etc/mete/mete.yaml"), &settings); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{settings.Listen, settings.AdminListen} {
		_, port, _ := strings.Cut(address, ":")
		if _, ok := c.ExposedPorts[port+"/tcp"]; !ok {
			t.Errorf("the settings listen on %s, and the image exposes %v", address, c.ExposedPorts)
		}
	}
	ending := time.Second // for the admin address
	for _, text := range []string{settings.Timeouts.Notice, settings.Timeouts.Drain} {
		if text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		ending += d
	}
	if ending >= 10*time.Second {
		t.Errorf("the server may take %v to end: docker stop kills after 10s", ending)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(readFile(t, image, "etc/ssl/certs/ca-certificates.crt")) {
		t.Error("the image has no certificates of authorities")
	}
}

// readFile returns a file of an image.
func readFile(t *testing.T, image v1.Image, name string) []byte {
	t.Helper()
	for header, content := range files(t, image) {
		if header.Name == name {
			return content
		}
	}
	t.Fatalf("the image has no %s", name)
	return nil
}

// files returns the files of an image with all its layers applied.
func files(t *testing.T, image v1.Image) func(yield func(*tar.Header, []byte) bool) {
	return func(yield func(*tar.Header, []byte) bool) {
		content := mutate.Extract(image)
		defer content.Close()
		for r := tar.NewReader(content); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(header, data) {
				return
			}
		}
	}
}

// runImage unpacks the image into an empty root, starts its entry point as its user and runs its health
// check, like a container engine. It does so with each store in README.md and doc/deploy.md.
func (r release) runImage(t *testing.T, image v1.Image) {
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // the user of the image is another
		t.Fatal(err)
	}
	for header, content := range files(t, image) {
		if header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s belongs to %d:%d, want root", header.Name, header.Uid, header.Gid)
		}
		if header.Typeflag == tar.TypeReg {
			write(t, filepath.Join(root, header.Name), content, header.FileInfo().Mode().Perm())
		}
		if header.Typeflag == tar.TypeSymlink {
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(header.Name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(header.Linkname, filepath.Join(root, header.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := inside(root, append(slices.Clone(config.Config.Entrypoint), "version")...).Output(); err != nil || !r.isStamped(string(got)) {
		t.Errorf("mete version prints %q (%v), want the version and the commit", got, err)
	}

	service := inside(root, "/bin/ratelimit", "--check") // as Envoy Gateway starts it
	service.Env = []string{"METE_STORE=memory", "GRPC_PROT=1"}
	if got, err := service.CombinedOutput(); err != nil || !strings.Contains(string(got), "GRPC_PROT is not a setting") {
		t.Errorf("/bin/ratelimit: %v\n%s", err, got)
	}

	t.Run("memory", func(t *testing.T) { r.serveImage(t, root, config.Config) })
	t.Run("redis", func(t *testing.T) { // as in README.md
		redis := proctest.StartRedis(t)
		r.serveImage(t, root, config.Config, "METE_STORE=redis://"+redis.Addr)
		if keys, err := redis.Do("DBSIZE"); err != nil || keys == "0" {
			t.Errorf("Redis has %s keys (%v), want the override in it", keys, err)
		}
	})
}

// serveImage starts the entry point of an unpacked image, with an admin token and
// settings in its environment, and operates the server as doc/deploy.md does.
func (r release) serveImage(t *testing.T, root string, config v1.Config, settings ...string) {
	entry, check := config.Entrypoint, config.Healthcheck.Test[1:]
	addr, admin := proctest.FreeAddr(t), proctest.FreeAddr(t)
	server := inside(root, slices.Concat(entry, config.Cmd, []string{"--listen", addr, "--admin-listen", admin})...)
	server.Env = append(settings, "METE_ADMIN_TOKEN="+token)
	p := proctest.Start(t, server)
	p.WaitReady(meted.Patience, proctest.HTTP("http://"+addr+"/readyz"))
	check = slices.Concat(check, []string{"--server", "http://" + admin}) // in the place of its own port
	if output, err := inside(root, check...).CombinedOutput(); err != nil {
		t.Errorf("health check: %v\n%s", err, output)
	}
	for _, args := range [][]string{ // as by docker exec in doc/deploy.md
		{"override", "set", "--action", "block", "--match", "header:x-api-key=k1", "--expires", "2h", "--reason", "scrapes the catalog", "--author", "kim"},
		{"override", "list"},
	} {
		operate := inside(root, slices.Concat(entry, args, []string{"--server", "http://" + admin})...)
		operate.Env = []string{"METE_TOKEN=" + token}
		if output, err := operate.CombinedOutput(); err != nil || !strings.Contains(string(output), "header:x-api-key=k1") && !strings.Contains(string(output), "kim") {
			t.Errorf("mete %q in the container: %v\n%s", args, err, output)
		}
	}
	metric := fmt.Sprintf(`mete_build_info{go=%q,revision=%q,version=%q} 1`, runtime.Version(), r.commit, version)
	if text := metrics(t, "http://"+admin); !strings.Contains(text, metric) {
		t.Errorf("/metrics has no %s", metric)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if err := inside(root, check...).Run(); err == nil {
		t.Error("the health check finds a server healthy that has ended")
	}
}

// metrics returns the metrics of a server.
func metrics(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// inside returns a command in a directory that is its root, as the user of the image.
// The environment is empty.
func inside(root string, args ...string) *exec.Cmd {
	cmd := &exec.Cmd{Path: args[0], Args: args, Dir: "/", Env: []string{}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		return cmd
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getegid(), Size: 1}}
	return cmd
}
