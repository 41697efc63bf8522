// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// A builder builds test programs of a target. It replaces files for the compiler only.
type builder struct {
	root string // of the repository
	dir  string // for the files that replace others; it is absolute
	target
	replaced map[string]string // paths of originals, to paths of replacements
}

// newBuilder returns a builder with an empty directory.
func newBuilder(root, parent string, t *target) (*builder, error) {
	dir, err := os.MkdirTemp(parent, t.name)
	return &builder{root, dir, *t, map[string]string{}}, err
}

// replace replaces a file, or adds it.
func (b *builder) replace(file string, text []byte) error {
	original := filepath.Join(b.root, filepath.FromSlash(file))
	changed, ok := b.replaced[original]
	if !ok {
		changed = filepath.Join(b.dir, fmt.Sprintf("%d-%s", len(b.replaced), path.Base(file)))
		b.replaced[original] = changed
	}
	return os.WriteFile(changed, text, 0o644)
}

// build compiles the tests of the target. The output of a failed compilation is in a [*compileError].
func (b *builder) build(ctx context.Context) (program string, err error) {
	overlay, err := json.Marshal(map[string]any{"Replace": b.replaced})
	if err != nil {
		return "", err
	}
	overlayFile := filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o644); err != nil {
		return "", err
	}
	program = filepath.Join(b.dir, "program")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", overlayFile, "-o", program,
		"-gcflags=./...=-e", // report all errors
		"./"+b.target.dir)
	cmd.Dir = b.root
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", &compileError{b.target.dir, output}
	}
	return program, err
}

// A compileError has the output of the go command.
type compileError struct {
	dir    string
	output []byte
}

func (e *compileError) Error() string {
	return fmt.Sprintf("compile the tests of ./%s:\n%s", e.dir, e.output)
}

var mutantFile = regexp.MustCompile(`\bmutant(\d+)\.go:`)

// buildAll builds one program with all jobs, which belong to the target. It returns the jobs that do not compile, and
// those that need their own program.
func (b *builder) buildAll(ctx context.Context, jobs []job) (program string, broken, alone map[int]bool, err error) {
	broken, alone = map[int]bool{}, map[int]bool{}
	for {
		if err := b.instrument(jobs, broken, alone); err != nil {
			return "", nil, nil, err
		}
		program, err := b.build(ctx)
		failure, ok := errors.AsType[*compileError](err)
		if !ok {
			return program, broken, alone, err
		}
		before := len(broken)
		for _, m := range mutantFile.FindAllSubmatch(failure.output, -1) {
			if id, err := strconv.Atoi(string(m[1])); err == nil {
				broken[id] = true
			}
		}
		if len(broken) == before {
			return "", nil, nil, failure
		}
	}
}

// instrument replaces the files of the target by files with all jobs that are not broken. It fills alone.
func (b *builder) instrument(jobs []job, broken, alone map[int]bool) error {
	byFile := map[string][]job{}
	for _, j := range jobs {
		if path.Ext(j.file) == ".go" && !broken[j.id] {
			byFile[j.file] = append(byFile[j.file], j)
		}
	}
	for _, file := range b.embeds {
		byFile[file] = slices.Clip(byFile[file]) // adds the files without jobs
	}
	for file, list := range byFile {
		text, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		text, rest, err := instrumentGo(file, text, list)
		if err != nil {
			return err
		}
		for _, j := range rest {
			alone[j.id] = true
		}
		if slices.Contains(b.embeds, file) {
			n := 0
			if text, n = instrumentEmbeds(text); n == 0 {
				return fmt.Errorf("%s embeds no script", file)
			}
		}
		if err := b.replaceInstrumented(file, text); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) replaceInstrumented(file string, text []byte) error {
	if err := b.replace(file, text); err != nil {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.PackageClauseOnly)
	if err != nil {
		return err
	}
	dir := path.Dir(file)
	return b.replace(path.Join(dir, "mutant__.go"), supportFile(parsed.Name.Name, filepath.Join(b.root, filepath.FromSlash(dir))))
}

// buildAlone builds a program for one mutant of Go code.
func (b *builder) buildAlone(ctx context.Context, m *mutant) (program string, err error) {
	source, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(m.file)))
	if err != nil {
		return "", err
	}
	if err := b.replace(m.file, m.apply(source)); err != nil {
		return "", err
	}
	return b.build(ctx)
}
