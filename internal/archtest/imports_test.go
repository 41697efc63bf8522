// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A layer is a directory tree with the packages of ours that it may import. The names are directories, which
// include their subdirectories, except ".", which is the root package alone.
type layer struct {
	dir   string
	may   []string
	tests []string // additional imports of its tests

	assembles []string // additional imports of the file limiter.go
}

// Groups of directories.
var (
	engine   = []string{".", "policy", "store", "bucket"}
	stores   = []string{"memstore", "redisstore", "pgstore", "storetest"}
	assembly = []string{"guard", "policy"}
	doors    = []string{"httplimit", "httpapi", "respapi", "proxy", "dashboard", "client", "grpclimit", "envoyapi"}
)

// layers are in the order of the picture in doc/architecture.md. Add a line for each new package.
var layers = []layer{
	{dir: "internal/spell"},
	{dir: "internal/visible"},
	{dir: "internal/requestpath", tests: []string{"internal", "policy"}},
	{dir: "internal/clientaddr"},
	{dir: "internal/almanac"}, // it reads the time zone database for bucket
	{dir: "bucket", may: []string{"internal/almanac"}},
	{dir: "internal/calendars", may: []string{"bucket"}},
	{dir: "api", may: []string{"bucket"}},                              // the JSON of the HTTP API: servers, clients and commands share it
	{dir: "store", may: []string{"bucket"}},                            // the contract between a limiter and its store
	{dir: "internal/dialect"},                                          // the header fields that policy files name
	{dir: "internal/denialbody"},                                       // the responses to denied requests that policy files define
	{dir: "internal/parse", may: []string{"bucket", "internal/spell"}}, // it reads documents by tables, and has no knowledge of rules
	{dir: "policy", may: []string{"bucket", "store", "internal/parse", "internal/denialbody", "internal/dialect", "internal/spell", "internal/visible", "internal/requestpath", "internal/clientaddr"}, tests: []string{"policytest"}},

	// Parts of the engine that use stores and have no knowledge of rules.
	{dir: "internal/shards", may: []string{"bucket", "store"}, tests: join(engine, stores...)},
	{dir: "internal/seen", may: []string{"bucket", "store"}, tests: join(engine, stores...)},
	{dir: "internal/outage", may: []string{"bucket", "store", "internal/seen"}, tests: join(engine, stores...)},
	{dir: ".", may: []string{"bucket", "policy", "store", "internal/shards", "internal/outage", "internal/seen"}, tests: join(stores, "internal")},

	// They supply facts to policies.
	{dir: "crawlers", may: []string{"policy"}},
	{dir: "geoip", may: []string{"policy", "internal/follow"}},

	// It reads the wire formats of language models, and has no knowledge of limits.
	{dir: "ai"},
	{dir: "aitokens", may: []string{"ai"}},

	// It scales costs, which need no knowledge of limits.
	{dir: "adaptive", may: []string{"bucket"}, tests: join(stores, ".", "policy")},

	// Stores know keys, limits and costs, never rules. NewLimiter assembles a limiter.
	{dir: "memstore", may: []string{".", "store", "bucket", "internal/atomicfile"}, tests: []string{"storetest", "internal", "policy"}},
	{dir: "redisstore", may: []string{".", "store", "bucket", "internal/calendars", "internal/lane", "internal/lease", "internal/calls", "internal/opening", "internal/presence", "internal/sharedkey"}, assembles: assembly, tests: join(stores, "internal", "guard", "keyed", "policy", "httplimit")},
	{dir: "pgstore/rules", may: []string{".", "store", "bucket", "policy", "policytest", "pgstore", "internal/spell"}, tests: join(stores, "internal")},                                // it stores policies, and no buckets
	{dir: "pgstore/violations", may: []string{".", "api", "store", "bucket", "policy", "pgstore/internal", "internal/clientaddr", "internal/denial"}, tests: join(stores, "internal")}, // it stores denials
	{dir: "pgstore", may: []string{".", "store", "bucket", "internal/calendars", "internal/lane", "internal/calls", "internal/opening", "internal/presence", "internal/sharedkey"}, assembles: assembly, tests: join(stores, "internal", "guard", "keyed", "policy")},
	{dir: "storetest", may: []string{".", "store", "bucket", "internal/testseed"}, tests: join(stores, "internal", "policy")},
	{dir: "guard", may: []string{".", "store", "bucket", "policy", "memstore", "internal/recovery"}, tests: join(stores, "internal", "policy")}, // it wraps a store

	// It reads policy files.
	{dir: "policyyaml", may: []string{"policy", "policytest", "internal/excerpt", "internal/visible"}, tests: join(engine, "httpapi", "memstore", "policytest")},

	// It runs the tests of a policy with a store of its own.
	{dir: "policytest", may: join(engine, "memstore", "internal/parse", "internal/spell", "internal/requestpath")},

	{dir: "keyed", may: []string{".", "store", "bucket", "memstore"}},

	// It keeps the overrides of administrators in a store of documents.
	{dir: "overrides", may: engine, tests: stores},

	// It records the actions of administrators.
	{dir: "audit", may: []string{"api", "bucket", "overrides"}, tests: engine},

	// They count the calls of a limiter's hooks.
	{dir: "topkeys", may: engine, tests: stores},
	{dir: "aiusage", may: join(engine, "ai"), tests: stores},
	{dir: "monitor", may: join(engine, "api", "internal/sse"), tests: stores},

	// Adapters translate protocols. They get a Limiter, and have no store, except in PerAddress of httplimit.
	{dir: "httplimit", may: join(engine, "api", "ai", "internal", "memstore"), tests: join(stores, doors...)},
	{dir: "httpapi", may: join(engine, "ai", "aiusage", "api", "audit", "internal", "monitor", "overrides", "topkeys"), tests: join(stores, doors...)},
	{dir: "respapi", may: join(engine, "api", "internal"), tests: join(stores, doors...)},
	{dir: "grpclimit", may: join(engine, "api", "internal"), tests: join(stores, doors...)},
	{dir: "envoyapi/dropin", may: join(engine, "api", "internal", "envoyapi", "policyyaml"), tests: join(stores, doors...)}, // the drop-in for envoyproxy/ratelimit
	{dir: "envoyapi", may: join(engine, "api", "internal"), tests: join(stores, join(doors, "policyyaml")...)},
	{dir: "dashboard", may: []string{"api", "internal"}, tests: join(engine, join(stores, doors...)...)}, // pages, and no data
	{dir: "jwtclaims", may: join(engine, "internal"), tests: join(stores, doors...)},                     // adapters read claims with it
	{dir: "proxy", may: join(engine, "api", "internal", "httplimit"), tests: join(stores, doors...)},
	{dir: "client", may: []string{"api", "store", "bucket"}, tests: join(engine, join(stores, join(doors, "ai", "aiusage", "audit", "monitor", "overrides", "topkeys", "internal")...)...)}, // it links no engine and no policy,

	// It decides simulated traffic with the real engine and a store of its own.
	{dir: "internal/playground", may: join(engine, "api", "memstore", "internal"), tests: stores},

	{dir: "internal", may: join(engine, "api", "ai"), tests: join(stores, doors...)},

	// Programs assemble all parts.
	{dir: "cmd", may: join(engine, join(stores, join(doors, "adaptive", "ai", "aitokens", "aiusage", "guard", "keyed", "policytest", "policyyaml", "jwtclaims", "crawlers", "geoip", "api", "audit", "monitor", "overrides", "topkeys", "internal")...)...)},
	{dir: "bench", may: join(engine, join(stores, join(doors, "api", "keyed", "internal")...)...)},
	{dir: "proof", may: join(engine, join(stores, join(doors, "api", "internal", "overrides", "topkeys")...)...)},
	{dir: "examples", may: join(engine, join(stores, join(doors, "api", "audit", "guard", "keyed", "policyyaml", "jwtclaims", "monitor", "overrides", "topkeys", "internal/proctest")...)...)},
	{dir: "tools"},
}

func join(a []string, b ...string) []string { return slices.Concat(a, b) }

// checkImports compares all imports of our packages with the layers.
func checkImports(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		l, ok := layerOf(f.dir)
		if !ok {
			found = append(found, finding{f.path, fmt.Sprintf("package %s has no layer", f.dir)})
			continue
		}
		for _, importPath := range f.imports() {
			dir, ours := t.own(importPath)
			if !ours || l.allows(dir, f.isTest()) || path.Base(f.path) == "limiter.go" && containsAny(l.assembles, dir) {
				continue
			}
			found = append(found, finding{f.path, fmt.Sprintf("%s must not import %s", l.dir, dir)})
		}
	}
	return found
}

func layerOf(dir string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return contains(l.dir, dir) })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

// allows reports whether a package of the layer may import the one in dir. Every test may use the seeds and
// the test kit.
func (l layer) allows(dir string, test bool) bool {
	may := join(l.may, l.dir)
	if test {
		may = join(may, append(l.tests, "internal/testseed", "internal/testkit")...)
	}
	return containsAny(may, dir)
}

func containsAny(parents []string, dir string) bool {
	return slices.ContainsFunc(parents, func(m string) bool { return contains(m, dir) })
}

// contains reports whether dir is parent or below it. The root package contains only itself.
func contains(parent, dir string) bool {
	return dir == parent || parent != "." && strings.HasPrefix(dir, parent+"/")
}
