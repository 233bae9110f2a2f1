package main

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

// A card's file keeps the order of its members.
func TestInOrder(t *testing.T) {
	t.Parallel()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte("b: [1, x, {z: true, a: null}]\na: '2'\n1: &one {d: 0.5}\nc: *one\n"), &document); err != nil {
		t.Fatal(err)
	}
	if got, err := inOrder(&document); err != nil || string(got) != `{"b":[1,"x",{"z":true,"a":null}],"a":"2","1":{"d":0.5},"c":{"d":0.5}}` {
		t.Errorf("%s %v", got, err)
	}
	if err := yaml.Unmarshal([]byte("? [a]\n: 1\n"), &document); err != nil {
		t.Fatal(err)
	}
	if got, err := inOrder(&document); err == nil {
		t.Errorf("a list as a name is %s", got)
	}
}
