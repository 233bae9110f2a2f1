package api

import (
	"bytes"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Compare puts the terms of an offer beside those of the offer before, nil for
// none, term by term and by path.
func Compare(terms, before jsontext.Value, labels map[string]Label) []Change {
	now, was := leaves(terms), leaves(before)
	paths := slices.Collect(maps.Keys(now))
	for path := range was {
		if _, still := now[path]; !still {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var changes []Change
	for _, path := range paths {
		c := Change{Path: path, Label: labels[path].Title, Kind: Same, Before: was[path], After: now[path]}
		switch {
		case before == nil:
		case c.Before == nil:
			c.Kind = Added
		case c.After == nil:
			c.Kind = Removed
		case !bytes.Equal(c.Before, c.After):
			c.Kind = Changed
		}
		changes = append(changes, c)
	}
	return changes
}

// maxPath is the length of a path from which on an object is one value: a long name would be repeated
// with each of its members.
const maxPath = 200

// leaves are the values of terms that are no objects, by dotted path.
func leaves(terms jsontext.Value) map[string]jsontext.Value {
	found := map[string]jsontext.Value{}
	var walk func(path string, v jsontext.Value)
	walk = func(path string, v jsontext.Value) {
		var inner map[string]jsontext.Value
		if v.Kind() == '{' && len(path) < maxPath && json.Unmarshal(v, &inner) == nil && len(inner) > 0 {
			for name, value := range inner {
				walk(path+"."+name, value)
			}
			return
		}
		found[path] = v
	}
	if terms.Kind() == '{' {
		walk("terms", terms)
	}
	return found
}

// Labels are the titles and descriptions of a terms schema's properties.
func Labels(schema jsontext.Value) map[string]Label {
	type node struct {
		Title       string          `json:"title"`
		Description string          `json:"description"`
		Properties  map[string]node `json:"properties"`
	}
	var root node
	found := map[string]Label{}
	if json.Unmarshal(schema, &root) != nil {
		return found
	}
	var walk func(path string, n node)
	walk = func(path string, n node) {
		for name, inner := range n.Properties {
			if inner.Title != "" || inner.Description != "" {
				found[path+"."+name] = Label{Title: inner.Title, Description: inner.Description}
			}
			walk(path+"."+name, inner)
		}
	}
	walk("terms", root)
	return found
}
