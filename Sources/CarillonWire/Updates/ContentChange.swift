/// What of an app's content is to be fetched again, or removed. It names objects and has none in it, so that a later one can stand for
/// an earlier one.
package enum ContentChange: Hashable, Sendable {
    /// The object, with so many levels of its parents above it and of its children below it.
    case refresh(object: String, parents: Int, children: Int)
    case remove(object: String)
    /// The roots of the content.
    case roots
    case infrastructures
    /// Everything.
    case resync

    /// Whether an earlier change that was not processed need not be, once this one is: of the same order key, or any where everything is fetched.
    package func coalesces(_ earlier: ContentChange, under key: String?, of earlierKey: String?) -> Bool {
        (key == earlierKey || self == .resync) && coalesces(earlier)
    }

    /// The same for one order key.
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
