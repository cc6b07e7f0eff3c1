/// The part of an app's content that clients must fetch again or remove. The change names objects and does not contain their
/// content, so a later change can replace an earlier one.
package enum ContentChange: Hashable, Sendable {
    /// Fetch the object with the given numbers of parent levels above it and child levels below it.
    case refresh(object: String, parents: Int, children: Int)
    case remove(object: String)
    /// Fetch the roots of the content.
    case roots
    case infrastructures
    /// Fetch everything.
    case resync

    /// Whether this change replaces an earlier change that was not processed. The earlier change must have the same order key,
    /// unless this change fetches everything.
    package func coalesces(_ earlier: ContentChange, under key: String?, of earlierKey: String?) -> Bool {
        (key == earlierKey || self == .resync) && coalesces(earlier)
    }

    /// Whether this change replaces an earlier change of the same order key.
    package func coalesces(_ earlier: ContentChange) -> Bool {
        switch (self, earlier) {
        case (.resync, _): true
        case (.refresh(let object, let parents, let children), .refresh(let other, let otherParents, let otherChildren)):
            object == other && parents >= otherParents && children >= otherChildren
        case (.remove(let object), .refresh(let other, _, _)), (.remove(let object), .remove(let other)): object == other
        case (.roots, .roots), (.infrastructures, .infrastructures): true
        default: false
        }
    }
}
