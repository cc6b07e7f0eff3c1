#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

extension APNsError: LocalizedError {
    /// ``message``.
    public var errorDescription: String? { message }
}
