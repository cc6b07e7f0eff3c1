import CarillonServer
import Foundation
import TestSupport
import Testing

struct SecretFileTests {
    private let reader = SecretFile.Reader(user: 1000, groups: [1000, 2000])

    private func fault(_ mode: UInt32, owner: UInt32 = 1000, group: UInt32 = 1000) -> String? {
        SecretFile(mode: mode, owner: owner, group: group).fault(for: reader)
    }

    @Test(arguments: [0o400, 0o440, 0o600, 0o640] as [UInt32])
    func `a file of the user or of root that a group of the process can read is accepted`(mode: UInt32) {
        for owner in [0, 1000] as [UInt32] {
            for group in [1000, 2000] as [UInt32] { #expect(fault(mode, owner: owner, group: group) == nil) }
        }
    }

    @Test func `every permission for others, and to change for the group, is refused`() {
        for mode in 0...0o777 as ClosedRange<UInt32> {
            let isAcceptable = mode & 0o037 == 0
            #expect((fault(mode) == nil) == isAcceptable, "\(String(mode, radix: 8))")
        }
    }

    @Test func `a file of another user is refused`() {
        #expect(fault(0o400, owner: 1001) != nil)
        #expect(fault(0o600, owner: 1001) != nil)
    }

    @Test func `a group of others can own a file that it cannot read`() {
        #expect(fault(0o440, group: 3000) != nil)
        #expect(fault(0o640, owner: 0, group: 0) != nil)
        #expect(fault(0o400, group: 3000) == nil)
        #expect(fault(0o600, owner: 0, group: 0) == nil)
    }

    @Test func `a credential of systemd is accepted, and a file beside its directory is not`() throws {
        let directory = try TemporaryDirectory.make()
        let credentials = directory + "/credentials"
        for place in [credentials, directory + "/credentials-2"] {
            try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: true)
            try Data("secret".utf8).write(to: URL(filePath: place + "/key"))
            try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: place + "/key")
        }
        try FileManager.default.createSymbolicLink(
            atPath: credentials + "/link", withDestinationPath: directory + "/credentials-2/key")
        func isAccepted(_ path: String, in credentials: String?) throws -> Bool {
            let handle = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? handle.close() }
            return SecretFile.fault(of: handle.fileDescriptor, at: path, credentials: credentials) == nil
        }
        #expect(try isAccepted(credentials + "/key", in: credentials))
        #expect(try isAccepted(credentials + "/key", in: credentials + "/"))
        #expect(try !isAccepted(credentials + "/key", in: nil))
        #expect(try !isAccepted(credentials + "/key", in: ""))
        #expect(try !isAccepted(credentials + "/key", in: "/"))
        #expect(try !isAccepted(directory + "/credentials-2/key", in: credentials))
        #expect(try !isAccepted(credentials + "/../credentials-2/key", in: credentials))
        #expect(try !isAccepted(credentials + "/link", in: credentials))
    }

    @Test func `the process belongs to its own group`() {
        #expect(SecretFile.Reader.current.user == geteuid())
        #expect(SecretFile.Reader.current.groups.contains(getegid()))
    }
}
