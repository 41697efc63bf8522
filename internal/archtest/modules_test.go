// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// checkRootAlone finds requirements and third-party imports of the root module, including its tests.
func checkRootAlone(t *tree) []finding {
	var found []finding
	root := t.root()
	for _, r := range slices.Concat(root.requires, root.replaces) {
		found = append(found, finding{"go.mod", fmt.Sprintf("the root module must not require or replace %s", r)})
	}
	for _, f := range t.files {
		if f.module != root {
			continue
		}
		for _, p := range f.imports() {
			if _, ours := t.own(p); !ours && !isStandard(p) {
				found = append(found, finding{f.path, fmt.Sprintf("the root module must not import %s", p)})
			}
		}
	}
	return found
}

// isStandard reports whether an import path is in the standard library: its first element has no dot.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// separate are the modules outside go.work. They have programs of others that the proofs run. The workspace has one
// version of each dependency, and with ours these programs do not compile, or are other programs than their releases.
// scripts/check long checks them, each with its own versions.
var separate = []string{
	"bench/exactness/mennanov",  // mennanov/limiters: needs the clients of AWS, etcd, Consul and Zookeeper
	"proof/envoy/original",      // envoyproxy/ratelimit: needs grpc-go 1.74 and an older go-control-plane
	"proof/envoy/tools/ghz",     // needs the protobuf and protoreflect packages of 2020
	"proof/envoy/tools/grpcurl", // pins the versions of its release
}

// checkModules compares the go.mod files with go.work and with the root.
func checkModules(t *tree) []finding {
	var found []finding
	root := t.root()
	for _, m := range t.modules {
		place := path.Join(m.dir, "go.mod")
		switch used := slices.Contains(t.work.uses, m.dir); {
		case used && slices.Contains(separate, m.dir):
			found = append(found, finding{"go.work", fmt.Sprintf("uses ./%s, which is separate: remove it from that list", m.dir)})
		case !used && !slices.Contains(separate, m.dir):
			found = append(found, finding{"go.work", fmt.Sprintf("does not use ./%s", m.dir)})
		}
		if m.version != t.work.version {
			found = append(found, finding{place, fmt.Sprintf("go %s, but go.work has go %s", m.version, t.work.version)})
		}
		if want := path.Join(root.path, m.dir); m.path != want {
			found = append(found, finding{place, fmt.Sprintf("module %s, want %s", m.path, want)})
		}
		for _, r := range m.replaces {
			if r != root.path && !strings.HasPrefix(r, root.path+"/") {
				found = append(found, finding{place, fmt.Sprintf("replaces %s, which is not ours", r)})
			}
		}
	}
	for _, dir := range t.work.uses {
		if !slices.ContainsFunc(t.modules, func(m *module) bool { return m.dir == dir }) {
			found = append(found, finding{"go.work", fmt.Sprintf("uses ./%s, which has no go.mod", dir)})
		}
	}
	return append(found, checkPathInStrings(t)...)
}

// checkPathInStrings finds module paths in strings of production code. A change of the module path could miss
// them.
func checkPathInStrings(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if f.isTest() {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && strings.Contains(lit.Value, t.root().path) {
				found = append(found, finding{t.at(lit.Pos()), "spells the module path out: read it from debug.ReadBuildInfo"})
			}
			return true
		})
	}
	return found
}
