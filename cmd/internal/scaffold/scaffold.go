// SPDX-License-Identifier: Apache-2.0

// Package scaffold implements mete init. It writes the first policy and settings from the answers to four
// questions.
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

const (
	PolicyFile   = "policy.yaml"
	SettingsFile = "mete.yaml"
)

// Options configure [Run].
type Options struct {
	// Dir is the directory of the files. Run creates it if necessary. Empty means the current directory.
	Dir string

	// Answers are the known answers. Run asks for missing ones or uses defaults.
	Answers Answers

	// Ask enables questions on In and Out. Otherwise missing answers have defaults.
	Ask bool

	// Force allows Run to replace files.
	Force bool

	// JSON prints the names of the files as JSON. It excludes Ask.
	JSON bool

	In  io.Reader
	Out io.Writer
}

// An ExistsError lists the files that Run would replace.
type ExistsError struct{ Files []string }

func (e *ExistsError) Error() string {
	verb, them := "exists", "it"
	if len(e.Files) > 1 {
		verb, them = "exist", "them"
	}
	return fmt.Sprintf("%s %s: --force replaces %s, and 'mete init DIR' writes to another directory", strings.Join(e.Files, " and "), verb, them)
}

// Run asks for missing answers, writes both files and prints the next commands. It writes both files or none. It
// returns an [ExistsError] if a file exists. Errors about answers name the answer and the remedy.
func Run(ctx context.Context, o Options) error {
	if !o.Force {
		if err := refuseExisting(o.Dir); err != nil {
			return err
		}
	}
	answers := o.Answers
	if _, err := answers.plan(); err != nil { // check flags before the first question
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
	_, err = io.WriteString(o.Out, visible.Lines(p.nextSteps(o.Dir)))
	return err
}

// written is the JSON output.
type written struct {
	Policy   string `json:"policy"`
	Settings string `json:"settings"`
}

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
