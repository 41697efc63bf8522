// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/metehq/mete/internal/atomicfile"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
)

// Options are the flags of mete convert.
type Options struct {
	From   string // gateway; "" to detect it
	File   string // configuration file; "-" for In
	Output string // policy file; "" for Out
	Force  bool   // replace an existing Output
	JSON   bool   // write policy and differences as JSON

	In       io.Reader
	Out, Err io.Writer
}

// ErrExists means that the output file exists and Force is not set.
var ErrExists = errors.New("the file exists: --force replaces it")

// Run converts a configuration, writes the policy, and prints the differences to Err. After an error it writes
// nothing to Out or Output.
func Run(_ context.Context, o Options) error {
	if o.Output != "" && !o.Force {
		switch _, err := os.Lstat(o.Output); {
		case err == nil:
			return fmt.Errorf("convert: %s: %w", o.Output, ErrExists)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("convert: %w", err)
		}
	}
	data, err := read(o)
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	result, err := Convert(o.From, o.File, data)
	if err != nil {
		return err
	}
	write := result.YAML
	if o.JSON {
		write = result.JSON
	}
	text, err := write()
	if err != nil {
		return err
	}
	if o.Output == "" {
		_, err = o.Out.Write(text)
	} else {
		err = atomicfile.Write(o.Output, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	if !o.JSON {
		result.print(o.Err)
	}
	return nil
}

func read(o Options) ([]byte, error) {
	in := o.In
	if o.File != "-" {
		f, err := os.Open(o.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, MaxBytes+1))
}

// print prints the recognized elements and the differences.
func (r *Result) print(w io.Writer) {
	fmt.Fprintf(w, "converted from %s:", r.From)
	for i, text := range r.Recognized {
		separator := ","
		if i == 0 {
			separator = ""
		}
		fmt.Fprintf(w, "%s %s", separator, text)
	}
	fmt.Fprintf(w, ", into %s, with %s\n", prose.Count(len(r.Rules), "rule"), prose.Count(len(r.Differences), "difference"))
	for _, d := range r.Differences {
		fmt.Fprintf(w, "  %s: %s\n    %s\n", d.Where, visible.Lines(d.What), visible.Lines(d.Effect))
		if d.Remedy != "" {
			fmt.Fprintf(w, "    %s\n", visible.Lines(d.Remedy))
		}
	}
}
