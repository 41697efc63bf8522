// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// published are the directories of the modules that others may require.
var published = []string{".", "cmd", "envoyapi", "geoip", "grpclimit", "guard", "jwtclaims", "pgstore", "policyyaml", "redisstore"}

// programs import one module each. A user writes them outside this repository.
var programs = map[string]string{
	".": `import "github.com/metehq/mete/keyed"
		func main() { println(keyed.Must("1/1m", 1).Allow("k1")) }`,
	"redisstore": `import ("context"; "github.com/metehq/mete/redisstore")
		func main() { _, err := redisstore.Open(context.Background(), "redis://127.0.0.1:1"); println(err != nil) }`,
	"pgstore": `import ("context"; "github.com/metehq/mete/pgstore")
		func main() { _, err := pgstore.Open(context.Background(), "postgres://127.0.0.1:1/x"); println(err != nil) }`,
	"grpclimit": `import "github.com/metehq/mete/grpclimit"
		func main() { _, err := grpclimit.New(nil, grpclimit.Config{}); println(err != nil) }`,
	"envoyapi": `import "github.com/metehq/mete/envoyapi"
		func main() { _, err := envoyapi.NewRateLimit(nil, envoyapi.RateLimitConfig{}); println(err != nil) }`,
	"geoip": `import "github.com/metehq/mete/geoip"
		func main() { _, err := geoip.Open(geoip.Config{}); println(err != nil) }`,
	"guard": `import "github.com/metehq/mete/guard"
		func main() { _, err := guard.New(nil, guard.Config{}); println(err != nil) }`,
	"policyyaml": `import "github.com/metehq/mete/policyyaml"
		func main() { _, err := policyyaml.LoadFile("absent.yaml"); println(err != nil) }`,
	"jwtclaims": `import "github.com/metehq/mete/jwtclaims"
		func main() { println(jwtclaims.CheckAlgorithms([]string{"none"}) != nil) }`,
}

// isolated has, for each library, the only modules that bring it along. A limiter of a
// store has a circuit breaker.
var isolated = map[string][]string{
	"github.com/redis/rueidis":     {"redisstore"},
	"github.com/jackc/pgx/v5":      {"pgstore"},
	"google.golang.org/grpc":       {"envoyapi", "grpclimit"},
	"github.com/sony/gobreaker/v2": {"guard", "redisstore", "pgstore"},
	"github.com/golang-jwt/jwt/v5": {"jwtclaims"},
	"github.com/goccy/go-yaml":     {"policyyaml"},

	"github.com/oschwald/maxminddb-golang/v2": {"geoip"},
}

// testModules installs the command and gets each module from a module proxy, in a
// module of its own that knows nothing of this repository.
func (r release) testModules(t *testing.T) {
	env := r.consumer(t)
	t.Run("install", func(t *testing.T) {
		bin := t.TempDir()
		run(t, t.TempDir(), append(env, "GOBIN="+bin), "go", "install", module+"/cmd/mete@"+version)
		if got, want := run(t, bin, nil, "./mete", "version"), "mete "+version+" go"; !strings.HasPrefix(got, want) {
			t.Errorf("mete version prints %q, want %q…", got, want)
		}
	})
	for dir, program := range programs {
		t.Run(dir, func(t *testing.T) {
			user := t.TempDir()
			write(t, filepath.Join(user, "go.mod"), []byte("module example.org/user\n\ngo 1.26.0\n"), 0o644)
			write(t, filepath.Join(user, "main.go"), []byte("package main\n"+program+"\n"), 0o644)
			run(t, user, env, "go", "get", path.Join(module, dir)+"@"+version)
			run(t, user, env, "go", "build", "-o", "program", ".")
			if output, err := exec.Command(filepath.Join(user, "program")).CombinedOutput(); err != nil || string(output) != "true\n" {
				t.Errorf("the program prints %q (%v), want true", output, err)
			}
			packages := run(t, user, env, "go", "list", "-deps", ".")
			for library, owners := range isolated {
				if got, want := strings.Contains(packages, library), slices.Contains(owners, dir); got != want {
					t.Errorf("a program with %s has packages of %s: %v, want %v", path.Join(module, dir), library, got, want)
				}
			}
		})
	}
}

// consumer returns the environment of a user of the version. The repository's modules come from a module
// proxy of files, which the go command writes when it downloads them. Other modules come from this
// machine's cache if it has them, and no download adds to that cache.
func (r release) consumer(t *testing.T) []string {
	t.Helper()
	cache, proxy, _ := strings.Cut(strings.TrimSpace(run(t, t.TempDir(), nil, "go", "env", "GOMODCACHE", "GOPROXY")), "\n")
	served := t.TempDir()
	args := []string{"mod", "download"}
	for _, dir := range published {
		args = append(args, path.Join(module, dir)+"@"+version)
	}
	base := []string{"GOWORK=off", "GOFLAGS=-modcacherw -mod=mod", "GOSUMDB=off", "GOTOOLCHAIN=local"}
	run(t, t.TempDir(), append(base, "GOMODCACHE="+served, "GOPROXY=direct",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+r.repository+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+module), "go", args...)
	return append(base, "GOMODCACHE="+t.TempDir(),
		"GOPROXY=file://"+filepath.Join(served, "cache", "download")+",file://"+filepath.Join(cache, "cache", "download")+","+proxy)
}
