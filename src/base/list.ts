// Elements that must be there. A missing one is a mistake of the program, never of its user.

/** The element at `index`, counted from the end when negative; throws when there is none. */
export function at<T>(list: ArrayLike<T>, index: number): T {
  const i = index < 0 ? list.length + index : index;
  if (!(i >= 0 && i < list.length)) {
    throw new RangeError(`no element ${index} in a list of ${list.length}`);
  }
  return list[i] as T;
}
