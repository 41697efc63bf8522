// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes the first policy and the first settings of a limiter, from the
// answers to four questions. It is mete init.
package scaffold

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/metehq/mete/internal/visible"
)

// The files that Run writes.
const (
	PolicyFile   = "policy.yaml"
	SettingsFile = "mete.yaml"
)

// Options are the inputs of [Run].
type Options struct {
	// Dir is the directory of the files. Run makes it if it is missing. Empty is the
	// current directory.
	Dir string

	// Answers that are empty are asked for, or have their default.
	Answers Answers

	// Ask lets Run ask questions: on In, and on Out. Without it, defaults fill the gaps.
	Ask bool

	// Force lets Run replace files.
	Force bool

	// JSON prints the names of the files as JSON. It excludes Ask.
	JSON bool

	In  io.Reader
	Out io.Writer
}

// An ExistsError lists files that Run would have to replace.
type ExistsError struct{ Files []string }

func (e *ExistsError) Error() string {
	verb, them := "exists", "it"
	if len(e.Files) > 1 {
		verb, them = "exist", "them"
	}
	return fmt.Sprintf("%s %s: --force replaces %s, and 'mete init DIR' writes to another directory", strings.Join(e.Files, " and "), verb, them)
}

// Run asks for the answers that are missing, writes both files and prints the next
// commands. It writes both files or none. An error about existing files is an
// [ExistsError], and one about answers names the answer and the remedy.
func Run(ctx context.Context, o Options) error {
	if !o.Force {
		if err := refuseExisting(o.Dir); err != nil {
			return err
		}
	}
	answers := o.Answers
	if _, err := answers.plan(); err != nil { // flags are checked before the first question
		return err
	}
	if o.Ask {
		if err := ask(ctx, o.In, o.Out, &answers); err != nil {
			return err
		}
	}
	p, err := answers.plan()
	if err != nil {
		return err
	}
	files := p.files()
	if err := verify(ctx, files); err != nil {
		return err
	}
	if err := write(o.Dir, files, o.Force); err != nil {
		return err
	}
	if o.JSON {
		return json.NewEncoder(o.Out).Encode(written{filepath.Join(o.Dir, PolicyFile), filepath.Join(o.Dir, SettingsFile)})
	}
	_, err = io.WriteString(o.Out, visible.Lines(p.next(o.Dir)))
	return err
}

// written is the JSON form of the files that Run has written.
type written struct {
	Policy   string `json:"policy"`
	Settings string `json:"settings"`
}

// refuseExisting returns an [ExistsError] if dir has one of the files.
func refuseExisting(dir string) error {
	var found []string
	for _, name := range []string{PolicyFile, SettingsFile} {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			found = append(found, path)
		}
	}
	if len(found) > 0 {
		return &ExistsError{found}
	}
	return nil
}
