// SPDX-License-Identifier: Apache-2.0

// Command worker runs one limiter in Go for the comparison of exactness. Each is configured as its documentation
// recommends. See package wire for its input and output.
package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/metehq/mete/bench/exactness/wire"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// A maker returns a limiter that lasts until the process ends.
type maker struct {
	module string
	make   func(wire.Setup) (wire.Limiter, error)
}

var makers = map[string]maker{
	"mete":                 {"", newMete},
	"mete, durable":        {"", newDurableMete},
	"x/time/rate":          {"golang.org/x/time", newXTime},
	"juju/ratelimit":       {"github.com/juju/ratelimit", newJuju},
	"tollbooth":            {"github.com/didip/tollbooth/v8", newTollbooth},
	"throttled":            {"github.com/throttled/throttled/v2", newThrottled},
	"ulule/limiter":        {"github.com/ulule/limiter/v3", newUlule},
	"sethvargo/go-limiter": {"github.com/sethvargo/go-limiter", newSethvargo},
	"httprate":             {"github.com/go-chi/httprate", newHttprate},
	"redis_rate":           {"github.com/go-redis/redis_rate/v10", newRedisRate},
}

func run() error {
	setup, err := wire.ReadSetup()
	if err != nil {
		return err
	}
	m, ok := makers[setup.Contender]
	if !ok {
		return fmt.Errorf("no limiter %q", setup.Contender)
	}
	limiter, err := m.make(setup)
	if err != nil {
		return fmt.Errorf("%s: %w", setup.Contender, err)
	}
	return wire.Serve(limiter, version(m.module), os.Stdin, os.Stdout)
}

func version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == module && dep.Replace == nil {
			return dep.Version
		}
	}
	return ""
}
