#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension APNsError: LocalizedError {
    /// The same text as ``message``.
    public var errorDescription: String? { message }
}
