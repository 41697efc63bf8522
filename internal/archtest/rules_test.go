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
			"any protocol or store, and each store and front door without the others",
		checkImports,
	},
	{
		"the root package has layers", "a maintainer reads one decision from the top down, and never climbs back",
		checkRootLayers,
	},
	{
		"the root module stands alone", "users of the library must never have a version moved under them",
		checkRootAlone,
	},
	{
		"modules agree", "one workspace builds and tests everything, with one version of the language " +
			"and one module path to change",
		checkModules,
	},
	{
		"packages are documented once", "a reader of the package list learns from each what it is for",
		checkPackageDocs,
	},
	{
		"files carry their license", "a file that is copied elsewhere still says what one may do with it",
		checkLicense,
	},
	{
		"names say what is inside", "a file or package named for its kind attracts whatever has no other place",
		checkNames,
	},
	{
		"functions are named for what they do", "a call such as apart(a) or lacking(b) sends its reader to the declaration, every time",
		checkFunctionNames,
	},
	{
		"files and functions stay small", "what does not fit on a few screens is read by nobody",
		checkSizes,
	},
	{
		"bucket has no clock and does no I/O", "time is an argument of the arithmetic, so that every store " +
			"can bring its own and every test can bring any",
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
