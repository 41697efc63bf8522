// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"os"
	"testing"
)

// A rule is something that holds everywhere in the repository.
type rule struct {
	name  string
	why   string
	check func(*tree) []finding
}

// A finding is a place that breaks a rule.
type finding struct {
	place string // path or path:line
	what  string
}

// rules are all of them. Their checks are in the other files of this package.
var rules = []rule{
	{
		"imports follow the layers", "the arithmetic must be usable without the engine, the engine without " +
			"any protocol or store, and each store and adapter without the others",
		checkImports,
	},
	{
		"the root package has layers", "maintainers read a decision from the top down",
		checkRootLayers,
	},
	{
		"the root module stands alone", "the library must never change the version of another module of its users",
		checkRootAlone,
	},
	{
		"modules agree", "one workspace builds and tests everything, with one Go version " +
			"and one module path to change",
		checkModules,
	},
	{
		"packages are documented once", "readers of the package list learn the purpose of each package",
		checkPackageDocs,
	},
	{
		"files carry their license", "a copied file keeps its license",
		checkLicense,
	},
	{
		"names tell the content", "a file or package with a vague name attracts unrelated code",
		checkNames,
	},
	{
		"functions are named after their action", "a call such as apart(a) sends its readers to the declaration",
		checkFunctionNames,
	},
	{
		"files and functions stay small", "readers skip code that fills many screens",
		checkSizes,
	},
	{
		"bucket has no clock and does no I/O", "time is an argument of the arithmetic, so that every store " +
			"and every test can choose it",
		checkPure,
	},
	{
		"nothing sleeps", "a pause in a test is a guess that fails on a slow machine, and a pause elsewhere " +
			"cannot be canceled. In a test, wait for the event (proctest.Poll, faulttest.Eventually), or run " +
			"in a bubble of testing/synctest and sleep there. Elsewhere, select on the context and a timer",
		checkSleep,
	},
	{
		"no test skips itself", "a skipped test passes on the machine that lacks what it needs: " +
			"fail, and say what to install",
		checkSkip,
	},
}

// loadRepository returns the tree of this repository.
func loadRepository(t *testing.T) *tree {
	t.Helper()
	repository, err := load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if len(repository.files) == 0 {
		t.Fatal("no Go files found in ../..")
	}
	return repository
}

func TestRules(t *testing.T) {
	repository := loadRepository(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.check(repository) {
				t.Errorf("%s: %s\n\twhy: %s", f.place, f.what, r.why)
			}
		})
	}
}
