// Red-black tree of embedded nodes, with the kernel's node layout (struct rb_node, 24 bytes):
//
//   offset  content
//        0  parent | colour (bit 0: 1 black)
//        8  right child
//       16  left child
//
// Pointers keep the kernel's 8-byte places, so that what follows the node in struct uprobe (ref,
// register_rwsem) lies on the lines where the published figures had it (kernel.md 0.1).
// A root is one word. A node that is in no tree points to itself (RB_CLEAR_NODE).
//
// Rules, checked by rb_check: a red node has black children; every path from a node down to a leaf
// passes the same number of black nodes; so no path is more than twice as long as another.
//
// Links go down only for those who walk without the lock: links (the root, LEFT, RIGHT) are atomic
// words, PARENT is for the lock's holder. A node's own words are written before [A] the link that
// shows it; a walker reads [B] a link, then the node. Forbidden: a node whose children or key are
// not there yet. Every rotation and erase stores its links in an order that leaves no loop in
// between: a subtree may be unreachable for a moment, never its own descendant (C1).
//
// plain: `PARENT`: under the table's treelock, which the caller holds. Whether a node is in no tree
// is also asked under register_rwsem, or without a reference left: no other change makes it so.

import { load32, store32 } from "../atomics";

export const RB_NODE_BYTES = 24;
const PARENT = 0;
const RIGHT = 8;
const LEFT = 16;
const BLACK: u32 = 1;
// A side is the offset of its link; BOTH minus a side is the other.
const BOTH: usize = LEFT + RIGHT;

// @ts-ignore: decorator
@inline
export function rb_left(n: usize): usize {
  return <usize>load32(n + LEFT); // B
}
// @ts-ignore: decorator
@inline
export function rb_right(n: usize): usize {
  return <usize>load32(n + RIGHT); // B
}
// @ts-ignore: decorator
@inline
function rb_parent(n: usize): usize {
  return <usize>(load<u32>(n, PARENT) & ~BLACK);
}
// A missing child counts as black.
// @ts-ignore: decorator
@inline
function is_red(n: usize): bool {
  return n != 0 && (load<u32>(n, PARENT) & BLACK) == 0;
}
function set_parent(n: usize, parent: usize): void {
  store<u32>(n, (<u32>parent) | (load<u32>(n, PARENT) & BLACK), PARENT);
}
function set_black(n: usize): void {
  store<u32>(n, load<u32>(n, PARENT) | BLACK, PARENT);
}
function set_red(n: usize): void {
  store<u32>(n, load<u32>(n, PARENT) & ~BLACK, PARENT);
}
function copy_colour(to: usize, from: usize): void {
  store<u32>(to, (<u32>rb_parent(to)) | (load<u32>(from, PARENT) & BLACK), PARENT);
}

/** Marks the node as being in no tree. */
export function rb_clear_node(n: usize): void {
  store<u32>(n, <u32>n, PARENT);
}
export function rb_empty_node(n: usize): bool {
  return load<u32>(n, PARENT) == <u32>n;
}

// Puts `to` in the place that `from` has below its parent.
function replace_child(root: usize, from: usize, to: usize): void {
  const parent = rb_parent(from);
  if (parent == 0) store32(root, <i32>to);
  else if (rb_left(parent) == from) store32(parent + LEFT, <i32>to);
  else store32(parent + RIGHT, <i32>to);
}

// The child on the side `up` (LEFT or RIGHT) of n takes n's place; n becomes its other child.
function rotate(root: usize, n: usize, up: usize): void {
  const down = BOTH - up;
  const child = <usize>load32(n + up);
  const inner = <usize>load32(child + down);
  store32(n + up, <i32>inner);
  if (inner != 0) set_parent(inner, n);
  replace_child(root, n, child);
  set_parent(child, rb_parent(n));
  store32(child + down, <i32>n);
  set_parent(n, child);
}

/** Links a new red node below `parent` (0: as the root) at `link`; rb_insert_color must follow. */
export function rb_link_node(n: usize, parent: usize, link: usize): void {
  store<u32>(n, <u32>parent, PARENT);
  store32(n + LEFT, 0);
  store32(n + RIGHT, 0);
  store32(link, <i32>n); // A
}
/** Address of the link to the left or right child, for rb_link_node. */
// @ts-ignore: decorator
@inline
export function rb_left_link(n: usize): usize {
  return n + LEFT;
}
// @ts-ignore: decorator
@inline
export function rb_right_link(n: usize): usize {
  return n + RIGHT;
}

/** Restores the rules after rb_link_node: at most two rotations. */
export function rb_insert_color(root: usize, node: usize): void {
  let n = node;
  for (let parent = rb_parent(n); is_red(parent); parent = rb_parent(n)) {
    const grand = rb_parent(parent); // a red node is never the root
    const side: usize = rb_left(grand) == parent ? LEFT : RIGHT;
    const uncle = <usize>load32(grand + (BOTH - side));
    if (is_red(uncle)) {
      set_black(parent);
      set_black(uncle);
      set_red(grand);
      n = grand;
      continue;
    }
    if (<usize>load32(parent + side) != n) {
      rotate(root, parent, BOTH - side);
      n = parent;
      parent = rb_parent(n);
    }
    set_black(parent);
    set_red(grand);
    rotate(root, grand, side);
  }
  set_black(<usize>load32(root));
}

// The subtree at `n` (0: empty) below `parent` lacks one black node.
function erase_color(root: usize, n: usize, parent: usize): void {
  while (parent != 0 && !is_red(n)) {
    const side: usize = rb_left(parent) == n ? LEFT : RIGHT;
    const far: usize = BOTH - side;
    let sibling = <usize>load32(parent + far);
    if (is_red(sibling)) {
      set_black(sibling);
      set_red(parent);
      rotate(root, parent, far);
      sibling = <usize>load32(parent + far);
    }
    if (!is_red(rb_left(sibling)) && !is_red(rb_right(sibling))) {
      set_red(sibling);
      n = parent;
      parent = rb_parent(n);
      continue;
    }
    if (!is_red(<usize>load32(sibling + far))) {
      set_black(<usize>load32(sibling + side));
      set_red(sibling);
      rotate(root, sibling, side);
      sibling = <usize>load32(parent + far);
    }
    copy_colour(sibling, parent);
    set_black(parent);
    set_black(<usize>load32(sibling + far));
    rotate(root, parent, far);
    return;
  }
  if (n != 0) set_black(n);
}

/** Takes a node out of the tree. Its own words are left as they are: see rb_clear_node. */
export function rb_erase(root: usize, n: usize): void {
  const left = rb_left(n);
  const right = rb_right(n);
  let child: usize; // what takes the place of the node that physically leaves
  let parent: usize;
  let lost_black: bool;
  if (left != 0 && right != 0) {
    // The successor leaves its own place and takes n's, with n's colour.
    let next = right;
    while (rb_left(next) != 0) next = rb_left(next);
    child = rb_right(next);
    lost_black = !is_red(next);
    parent = rb_parent(next);
    if (parent == n) {
      parent = next;
    } else {
      store32(parent + LEFT, <i32>child);
      if (child != 0) set_parent(child, parent);
      store32(next + RIGHT, <i32>right);
      set_parent(right, next);
    }
    store32(next + LEFT, <i32>left);
    set_parent(left, next);
    replace_child(root, n, next);
    store<u32>(next, load<u32>(n, PARENT), PARENT);
  } else {
    child = left != 0 ? left : right;
    lost_black = !is_red(n);
    parent = rb_parent(n);
    replace_child(root, n, child);
    if (child != 0) set_parent(child, parent);
  }
  if (lost_black) erase_color(root, child, parent);
}

/** First node in order, or 0. */
export function rb_first(root: usize): usize {
  let n = <usize>load32(root);
  if (n == 0) return 0;
  while (rb_left(n) != 0) n = rb_left(n);
  return n;
}

/** The node after `node` in order, or 0. */
export function rb_next(node: usize): usize {
  let n = node;
  if (rb_right(n) != 0) {
    n = rb_right(n);
    while (rb_left(n) != 0) n = rb_left(n);
    return n;
  }
  let parent = rb_parent(n);
  while (parent != 0 && rb_right(parent) == n) {
    n = parent;
    parent = rb_parent(n);
  }
  return parent;
}

/**
 * Checks the subtree at `n` whose parent must be `parent`: returns its black height, or -1 where
 * a rule is broken. Recursion is bounded by twice the logarithm of the number of nodes, or by
 * `depth` where the tree is broken.
 */
export function rb_check(n: usize, parent: usize, depth: i32): i32 {
  if (n == 0) return 1;
  if (depth == 0 || rb_parent(n) != parent) return -1;
  if (is_red(n) && (parent == 0 || is_red(parent))) return -1;
  const left = rb_check(rb_left(n), n, depth - 1);
  const right = rb_check(rb_right(n), n, depth - 1);
  if (left < 0 || left != right) return -1;
  return left + (is_red(n) ? 0 : 1);
}
