// SPDX-License-Identifier: Apache-2.0

package exactness

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/metehq/mete/bench/exactness/clock"
	"github.com/metehq/mete/bench/exactness/wire"
)

var buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "mete-exactness-") })

// Clean removes the programs that the contenders built. Call it when the tests of a process have ended.
func Clean() {
	if dir, err := buildDir(); err == nil {
		os.RemoveAll(dir)
	}
	clock.Clean()
}

// buildOnce returns a function that builds a Go program once and returns its path.
func buildOnce(name, moduleDir, pkg string, workspace bool) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := buildDir()
		if err != nil {
			return "", err
		}
		program := filepath.Join(dir, name)
		return program, clock.BuildGo(moduleDir, pkg, program, workspace)
	})
}

// Paths are relative to the directory of this package, where its tests run.
var (
	buildWorker   = buildOnce("worker", ".", "./worker", true)
	buildMennanov = buildOnce("mennanov", "mennanov", ".", false)
	buildCaddy    = buildOnce("caddy", "../../proof/convert/caddy/testdata/program", ".", false)
	buildEnvoy    = buildOnce("ratelimit", "../../proof/envoy/original", "github.com/envoyproxy/ratelimit/src/service_cmd", false)
)

type worker struct{ *wire.Client }

func (w worker) ContenderVersion() string { return w.Version }

func startProgram(program, name string, c *clock.Clock, s wire.Setup, args ...string) (Node, error) {
	s.Contender = name
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), c.Environ()...)
	client, err := wire.Start(cmd, s)
	if err != nil {
		return nil, err
	}
	return worker{client}, nil
}

func goWorker(name string) func(testing.TB, *clock.Clock, wire.Setup) (Node, error) {
	return func(_ testing.TB, c *clock.Clock, s wire.Setup) (Node, error) {
		program, err := buildWorker()
		if err != nil {
			return nil, err
		}
		return startProgram(program, name, c, s)
	}
}

func mennanovWorker(_ testing.TB, c *clock.Clock, s wire.Setup) (Node, error) {
	program, err := buildMennanov()
	if err != nil {
		return nil, err
	}
	return startProgram(program, "", c, s)
}

func nodeWorker(name string) func(testing.TB, *clock.Clock, wire.Setup) (Node, error) {
	return func(_ testing.TB, c *clock.Clock, s wire.Setup) (Node, error) {
		return startProgram("node", name, c, s, filepath.Join("node", "worker.mjs"))
	}
}
