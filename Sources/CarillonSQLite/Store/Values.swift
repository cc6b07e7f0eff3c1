import CarillonCore
import CarillonWire
import GRDB

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Row {
    func bytes(_ column: String) -> [UInt8]? { (self[column] as Data?).map(Array.init) }

    func bytes16(_ column: String) throws -> Bytes16 {
        guard let bytes = bytes(column), let value = Bytes16(bytes) else {
            throw StoreFault(.unavailable, "the column \(column) does not hold 16 bytes")
        }
        return value
    }

    func timestamp(_ column: String) -> Timestamp { Timestamp(milliseconds: self[column]) }
}

extension Bytes16 {
    var data: Data { Data(bytes) }
}
